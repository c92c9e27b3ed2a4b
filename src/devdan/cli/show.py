"""``devdan show``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from devdan.cli import arguments as opt
from devdan.cli.console import clear_errors, out


def show(
    model: opt.Saved,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Show what a model is: its options, columns, classes, size, what it has seen, and what happened to it lately.

    - devdan show runs/my-devdan
    - devdan show model.devdan --json
    """
    from devdan.cli import display
    from devdan.model.opening import open_model
    from devdan.serving.facts import facts
    from devdan.serving.matching import model_path

    with clear_errors():
        path = model_path(model)
        known = facts(open_model(path), path)
    if as_json:
        print(json.dumps(known, default=lambda value: value.tolist() if hasattr(value, "tolist") else str(value)))
        return
    for part in display.model(known):
        out.print(part)
