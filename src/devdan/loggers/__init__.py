"""Learning curves in TensorBoard and MLflow: wrap the records of an evaluation in :func:`logged`."""

from devdan.loggers.log import Log, Logger, logged
from devdan.loggers.mlflow import MLflowLogger
from devdan.loggers.tensorboard import TensorBoardLogger

__all__ = ["Log", "Logger", "MLflowLogger", "TensorBoardLogger", "logged"]
