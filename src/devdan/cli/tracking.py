"""The loggers named by ``--log``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from devdan.loggers import Logger
    from devdan.runs.runfolder import RunFolder

NAMES = ("tensorboard", "mlflow")


def loggers(texts: Sequence[str], folder: Path) -> list[Logger]:
    """The loggers of the run in a folder."""
    from devdan.runs.runfolder import RunFolder

    named = [text.partition(":")[::2] for text in texts]
    if len({name for name, _ in named}) < len(named):
        raise ValueError(f"--log takes {' and '.join(NAMES)} once each, got {', '.join(texts)}")
    try:
        return [_logger(name, target or None, RunFolder(folder)) for name, target in named]
    except ModuleNotFoundError as error:
        raise ValueError(error) from error


def _logger(name: str, target: str | None, folder: RunFolder) -> Logger:
    from devdan.loggers import MLflowLogger, TensorBoardLogger

    if name == "tensorboard":
        return TensorBoardLogger(Path(target) / folder.name if target else folder.tensorboard_path)
    if name == "mlflow":
        os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")  # do not wait minutes for a lost server
        is_uri = target is not None and "://" in target
        return MLflowLogger(
            None if is_uri else target, uri=target if is_uri else None, name=folder.name, memory=folder.mlflow_path
        )
    raise ValueError(f"--log must be {' or '.join(NAMES)}, with or without a target after a colon, got {name!r}")
