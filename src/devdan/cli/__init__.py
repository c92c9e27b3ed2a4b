"""The command line: parse, call, print."""

from __future__ import annotations

from typing import Annotated

import typer

import devdan
from devdan.cli.prepare import compile_models, fetch, streams
from devdan.cli.run import RUN_HELP, report, run
from devdan.cli.saved_model import learn, predict, show
from devdan.cli.serve import backup, replay, serve
from devdan.cli.table import table

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Learn from data streams with DEVDAN, a neural classifier that builds its own hidden layer.\n\n"
    "`devdan run sea` evaluates it on a built-in stream, `devdan run my.csv --target label` on your own file: each "
    "chunk is predicted first, then learned from. `report.html` shows the results. `devdan predict`, `devdan learn` "
    "and `devdan show` are for the model that a run has left; `devdan serve` is for requests over HTTP.",
)


_TOLD = ("numpy", "numba", "scikit-learn", "scipy", "pyarrow", "river", "capymoa", "pandas", "polars", "starlette")


def _version(wanted: bool) -> None:
    if not wanted:
        return
    import platform
    from importlib import metadata

    print(f"devdan {devdan.__version__}")
    print(f"{platform.python_implementation()} {platform.python_version()} on {platform.platform()}")
    installed = {one.name.lower(): one.version for one in metadata.distributions() if one.name is not None}
    print(", ".join(f"{name} {installed[name]}" for name in _TOLD if name in installed))
    raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print what a bug report needs to say.")
    ] = False,
) -> None:
    """Options of the program itself."""


app.command(help=RUN_HELP)(run)
for command in (predict, learn, show, serve, replay, backup, table, streams, fetch, report):
    app.command()(command)
app.command("compile")(compile_models)
