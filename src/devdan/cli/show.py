"""``devdan show``."""

from __future__ import annotations

import json
from typing import Annotated, Optional

import typer

from devdan.cli import arguments as opt
from devdan.cli.console import clear_errors, out


def show(
    model: opt.Saved,
    key: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="KEY", help="Of a fleet: show the network of this key."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Show what a model is: its options, columns, classes, size, what it has seen, and what happened to it lately.

    - devdan show runs/my-devdan
    - devdan show model.devdan --json
    - devdan show runs/my-fleet --key "pump 7"
    """
    from devdan.cli import display
    from devdan.fleet.fleet import DEVDANFleet
    from devdan.opening import open_model
    from devdan.serving.facts import facts
    from devdan.serving.fleet_facts import fleet_facts
    from devdan.serving.matching import model_path, network_of

    with clear_errors():
        path = model_path(model)
        learned = open_model(path)
        is_fleet = isinstance(learned, DEVDANFleet) and key is None
        known = fleet_facts(learned, path) if is_fleet else facts(network_of(learned, key), path)
    if as_json:
        print(json.dumps(known, default=lambda value: value.tolist() if hasattr(value, "tolist") else str(value)))
        return
    for part in display.fleet(known) if is_fleet else display.model(known):
        out.print(part)
