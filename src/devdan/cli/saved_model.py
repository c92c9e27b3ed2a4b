"""``devdan predict``, ``devdan learn`` and ``devdan show``, for a model that has been saved."""

from __future__ import annotations

import inspect
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from devdan.cli import arguments as opt
from devdan.cli.console import clear_errors, fail, note, of_disk, out, progress, say, show_notes, stoppable, stopped
from devdan.streams.reading import Reading

if TYPE_CHECKING:
    from devdan.apply import TablePredictions
    from devdan.fleet.fleet import DEVDANFleet
    from devdan.model.classifier import EvolvingClassifier

_AT_A_TIME = 1000  # rows of standard input, if they are written to a file


@opt.takes_reading(*opt.UNLABELLED)
def predict(
    model: opt.Saved,
    file: opt.Rowwise,
    reading: Reading,
    proba: Annotated[
        bool, typer.Option("--proba", help="Also the probability of each class, and thresholds that decide.")
    ] = False,
    path: Annotated[
        Optional[Path],
        opt.path_option(
            "--out", "FILE", "Write to a .csv, .parquet or .jsonl file instead, which appears when it is complete."
        ),
    ] = None,
    keep: Annotated[
        Optional[list[str]],
        opt.option("COLUMNS", "Columns of the input to put first, unchanged, separated by commas; may be repeated."),
    ] = None,
    key: opt.Key = None,
    options: opt.Settings = None,
) -> None:
    """Predict the rows of a file with a saved model; nothing is learned.

    The model is one that `devdan run` or `save` has written. The file has the columns that it has learned from, in any
    order, and needs no labels. The predictions are printed as CSV, in the order of the rows.

    - devdan predict runs/my-devdan new.csv --keep id --proba
    - devdan predict model.devdan new.parquet --out predicted.parquet
    - tail -n +1 -f log.csv | devdan predict model.devdan -
    - devdan predict runs/my-fleet new.csv --key device
    - devdan predict model.devdan new.csv --set 'decide={"fraud": {"budget": 0.01}}'

    From standard input (-), each row is answered as soon as it has been read: CSV with a header, or one JSON object in
    each line, which is answered with another.
    """
    from devdan.apply import TablePredictions, check_format, check_kinds, into_file, model_path, set_options
    from devdan.bench import named_models
    from devdan.fleet.fleet import open_model
    from devdan.streams import open_table

    show_notes()
    with clear_errors():
        if path is not None:
            check_format(path)
        learned = open_model(model_path(model))
        set_options(learned, named_models.parse_options(options or []), only=("decide",))
        check_kinds(learned, reading)
        try:
            table = open_table(file, n_at_a_time=1 if path is None else _AT_A_TIME, **reading.as_keywords())
            predictions = TablePredictions(
                learned, table, [name for text in keep or [] for name in opt.words(text)], key
            )
            if predictions.ignored:
                note(f"columns that the model does not know are ignored: {', '.join(predictions.ignored[:20])}")
            for label, rule in learned.decision_.rules.items():
                note(f"{label} is called {rule.told()}")
            if path is None:
                _print(predictions, proba)
                return
            n_rows = 0
            with (
                progress(table.origin, table.n_rows or table.estimated_rows) as show,
                into_file(path, predictions, proba) as writer,
                stoppable(),
            ):
                for block in predictions:
                    writer.write(block)
                    n_rows += len(block.labels)
                    show(n_rows)
        except KeyboardInterrupt:
            if path is not None:
                say(f"Stopped: {path} is not written.")
            stopped()
    out.print(f"{n_rows:,} predictions: {path}", highlight=False)


def _print(predictions: TablePredictions, proba: bool) -> None:
    """Print each block at once; the reader may close the pipe early."""
    from devdan.apply import onto

    file, n_rows, table = sys.stdout.buffer, 0, predictions.table
    try:
        writer = onto(file, predictions, proba)
        file.flush()
        with progress(table.origin, table.n_rows or table.estimated_rows or 0, not out.is_terminal) as show:
            for block in predictions:
                writer.write(block)
                file.flush()
                n_rows += len(block.labels)
                show(n_rows)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())  # so that Python can flush its buffer when it ends


@opt.takes_reading()
def learn(
    model: opt.Saved,
    file: opt.Rowwise,
    reading: Reading,
    key: opt.Key = None,
    options: opt.Settings = None,
    chunk: opt.Chunk = 500,
    path: Annotated[Optional[Path], opt.path_option("--out", "NEW", "Save it here, and leave MODEL as it is.")] = None,
) -> None:
    """Let a saved model learn on from a file with labels, and save it again.

    Rows without a label are observed: the autoencoder learns from them, the classifier does not. New values, columns
    that had no value yet and new classes are learned as well. If a row is invalid, nothing is saved.

    - devdan learn runs/my-devdan yesterday.csv --target label
    - devdan learn model.devdan yesterday.csv --target label --out newer.devdan
    - cat log.jsonl | devdan learn model.devdan - --target label
    - devdan learn runs/my-fleet yesterday.csv --target label --key device
    """
    from devdan.apply import as_written, check_kinds, columns_of, learn_on, model_path, set_options
    from devdan.bench import named_models
    from devdan.fleet.fleet import open_model
    from devdan.streams import open_stream

    show_notes()
    with clear_errors():
        source = model_path(model)
        learned = open_model(source)
        try:
            set_options(learned, named_models.parse_options(options or []))
            check_kinds(learned, reading)
            as_text = as_written(learned, key or getattr(learned, "key_name_", None))
            with stoppable():
                stream = open_stream(
                    file if file == "-" or "://" in file else Path(file),
                    chunk=chunk,
                    **reading.with_text(as_text).as_keywords(),
                )
                ignored = columns_of(learned, stream, key)[1].ignored
                if ignored:
                    note(f"columns that the model does not know are ignored: {', '.join(ignored[:20])}")
                with progress(stream.name, stream.n_samples or stream.estimated_samples) as show:
                    result = learn_on(learned, stream, show, key)
            learned.save(path or source)
        except KeyboardInterrupt:
            say(f"Stopped: nothing is saved, {source} is unchanged.")
            stopped()
        except ValueError as error:
            fail(f"{error}; nothing is saved, {source} is unchanged")
        except OSError as error:
            fail(f"{of_disk(error)}; {source} is unchanged")
    parts = [
        f"{result.n_samples:,} samples, {result.n_labels:,} labels",
        f"{result.counted} {result.before:,} → {result.after:,}",
    ]
    if result.new_classes:
        parts.append(f"new classes: {', '.join(map(str, result.new_classes))}")
    if result.new_notes:
        parts.append(f"{len(result.new_notes)} new note{'s' if len(result.new_notes) > 1 else ''} about columns")
    out.print(f"Learned from {'; '.join(parts)}. Saved: {path or source}", highlight=False, markup=False)


# --- ``devdan show`` ---------------------------------------------------------------------------------------------

_EVENTS = 10
_QUANTILES = (0.1, 0.5, 0.9)  # of the accuracies of the keys
_WORST = 10
_FEW = 20  # labels below which a key's accuracy says little


def show(
    model: opt.Saved,
    key: Annotated[Optional[str], opt.option("KEY", "Of a fleet: show the network of this key.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Show a model: its options, columns, classes and size, what it has seen, and its latest changes.

    - devdan show runs/my-devdan
    - devdan show model.devdan --json
    - devdan show runs/my-fleet --key "pump 7"
    """
    from devdan.apply import model_path, network_of
    from devdan.cli import display
    from devdan.fleet.fleet import DEVDANFleet, open_model

    with clear_errors():
        path = model_path(model)
        learned = open_model(path)
        is_fleet = isinstance(learned, DEVDANFleet) and key is None
        known = fleet_facts(learned, path) if is_fleet else model_facts(network_of(learned, key), path)
    if as_json:
        print(json.dumps(known, default=lambda value: value.tolist() if hasattr(value, "tolist") else str(value)))
        return
    for part in display.fleet(known) if is_fleet else display.model(known):
        out.print(part)


# --- Facts -------------------------------------------------------------------------------------------------------


def _facts(model: EvolvingClassifier | DEVDANFleet, path: Path) -> dict[str, Any]:
    """The facts about a model or a fleet: what it is, its columns and classes."""
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "kind": type(model).__name__,
        "options": _changed_options(model),
        "n_features": int(model.n_features_in_),
        "feature_names": [str(name) for name in getattr(model, "feature_names_in_", [])] or None,
        "columns": model.column_records(),
        "notes": [*model.encoding_.notes, *_notes_of_histories(model)],
        "classes": model.mixture_.classes.labels.tolist(),
    }


def _notes_of_histories(model: EvolvingClassifier | DEVDANFleet) -> list[str]:
    histories = getattr(model, "histories_", None)
    return [] if histories is None else histories.notes_


def model_facts(model: EvolvingClassifier, path: Path) -> dict[str, Any]:
    """The facts about a model: what it is, what it has seen, its structure, and its latest changes."""
    from devdan.kernel import DISCRIMINATIVE

    net = model.mixture_.nets[0]
    return {
        **_facts(model, path),
        "n_inputs": model.mixture_.n_inputs,
        "n_samples": int(model.n_seen_),
        "n_labels": int(net.n_learned[DISCRIMINATIVE]),
        "n_hidden": model.n_hidden_,
        "n_members": getattr(model, "n_members_", None),
        "n_parameters": model.n_parameters_,
        "importances": model.importances_ if hasattr(model, "classes_") else None,
        "growths": model.growths_,
        "prunings": model.prunings_,
        "drifts": model.drifts_,
        "n_events": model.n_events_,
        "events": [event._asdict() for event in sorted(model.events_)[-_EVENTS:]],
    }


def _changed_options(model: Any) -> dict[str, Any]:
    """The options that differ from their defaults, and those of an ensemble's members."""
    defaults = {name: option.default for name, option in inspect.signature(type(model)).parameters.items()}
    changed: dict[str, Any] = {}
    for name, value in model.get_params(deep=False).items():
        if name == "estimator" and value is not None:
            changed |= {f"estimator: {option}": own for option, own in _changed_options(value).items()}
        elif value is not defaults[name] and not _same(value, defaults[name]):
            changed[name] = value
    return changed


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)


def fleet_facts(fleet: DEVDANFleet, path: Path) -> dict[str, Any]:
    """The facts about a fleet: what it is, what it has seen, and how accurate its keys are."""
    import numpy as np

    table = fleet.summary()
    totals = {name: sum(table[name].to_pylist()) for name in ("samples", "labels", "units")}
    drifts = {name: sum(table[name].to_pylist()) for name in ("real_drifts", "virtual_drifts")}
    known = table.filter((table["labels"].to_numpy() >= _FEW) & table["accuracy"].is_valid().to_numpy())
    accuracy = known["accuracy"].to_numpy()
    worst = known.sort_by([("accuracy", "ascending"), ("labels", "descending")]).slice(0, _WORST)
    return {
        **_facts(fleet, path),
        "key": fleet.key_name_,
        "n_keys": len(fleet),
        "n_rows": fleet.n_rows_,
        **totals,
        **drifts,
        "n_judged": len(known),
        "accuracy": dict(zip(map(str, _QUANTILES), np.quantile(accuracy, _QUANTILES).tolist(), strict=True))
        if len(known) > 0
        else None,
        "worst": worst.to_pylist(),
    }
