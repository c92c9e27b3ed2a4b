"""``devdan learn``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from devdan.cli import arguments as opt
from devdan.cli.console import clear_errors, fail, note, of_disk, out, progress, say, show_notes, stoppable, stopped


def learn(
    model: opt.Saved,
    file: opt.Rowwise,
    target: opt.Target = None,
    key: opt.Key = None,
    drop: opt.Drop = None,
    header: opt.Header = None,
    chunk: opt.Chunk = 500,
    path: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--out", metavar="NEW", parser=opt.a_path("--out"), help="Save it here, and leave MODEL as it is."
        ),
    ] = None,
) -> None:
    """Let a model that `devdan run` or `save` has left learn on from a file with labels, and save it.

    Rows without a label are observed: the autoencoder learns from them, the classifier does not. New values, columns
    that had no value yet and new classes are learned as well. If a row is invalid, nothing is saved.

    - devdan learn runs/my-devdan yesterday.csv --target label
    - devdan learn model.devdan yesterday.csv --target label --out newer.devdan
    - cat log.jsonl | devdan learn model.devdan - --target label
    - devdan learn runs/my-fleet yesterday.csv --target label --key device
    """
    from devdan.opening import open_model
    from devdan.serving.learning import columns_of, learn_on
    from devdan.serving.matching import as_written, model_path
    from devdan.streams import open_stream

    show_notes()
    with clear_errors():
        source = model_path(model)
        learned = open_model(source)
        try:
            with stoppable():
                stream = open_stream(
                    "-" if file == "-" else Path(file),
                    target=target,
                    chunk=chunk,
                    header=header,
                    drop=drop or [],
                    as_text=as_written(learned, key or getattr(learned, "key_name_", None)),
                )
                ignored = columns_of(learned, stream, key).ignored
                if ignored:
                    note(f"the model does not know, and ignores: {', '.join(ignored[:20])}")
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
        f"{result.sizes} {result.before:,} → {result.after:,}",
    ]
    if result.new_classes:
        parts.append(f"new classes: {', '.join(map(str, result.new_classes))}")
    if result.new_notes:
        parts.append(f"{len(result.new_notes)} new note{'s' if len(result.new_notes) > 1 else ''} about columns")
    out.print(f"Learned from {'; '.join(parts)}. Saved: {path or source}", highlight=False, markup=False)
