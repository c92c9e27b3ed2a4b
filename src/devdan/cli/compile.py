"""``devdan compile``."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from devdan.cli.console import clear_errors, err, out, say


def compile_models(
    baselines: Annotated[
        bool, typer.Option("--baselines", help="Also the fuzzy rules that `devdan table` compares with.")
    ] = False,
) -> None:
    """Compile the models for this machine in advance, so that no later call has to wait.

    Otherwise, each part of the models is compiled when it is first called, and cached for later processes. Useful when
    an image is built, or before many workers start at once.
    """
    from functools import partial

    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from devdan.bench import models
    from devdan.evaluation.measures import OF_RULES
    from devdan.fleet.fleet import compile_fleet
    from devdan.model import compilation

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with clear_errors():
        if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
            raise ValueError("NUMBA_DISABLE_JIT is set, so nothing can be compiled")
        jobs = [*compilation.jobs(), compilation.Job("fleet", compile_fleet)]
        if baselines:
            jobs += [
                compilation.Job(name, partial(compilation.compile_kernel, models.build(name))) for name in OF_RULES
            ]
        outcomes = []
        with Progress(*columns, console=err, disable=not err.is_terminal, transient=True) as bar:
            task = bar.add_task(jobs[0].name, total=len(jobs))
            for outcome in compilation.compile_ahead(jobs):
                outcomes.append(outcome)
                following = jobs[len(outcomes)].name if len(outcomes) < len(jobs) else ""
                bar.update(task, advance=1, description=following)
                took = f"compiled in {outcome.seconds:.1f} s" if outcome.n_compiled else "compiled already"
                say(f"{outcome.name}: {took}")
        folders = " and ".join(str(folder) for folder in compilation.cache_folders())
    seconds = sum(outcome.seconds for outcome in outcomes)
    if any(outcome.n_compiled for outcome in outcomes):
        out.print(f"Compiled in {seconds:.1f} s, cached in {folders}", highlight=False)
    else:
        out.print(f"Nothing to do: everything is compiled already, in {folders}", highlight=False)
