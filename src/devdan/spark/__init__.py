"""Fleets on Spark: a network for each key; the engine keeps state and checkpoints, and spreads the work.

>>> from devdan.spark import learn
"""

try:
    import pyspark  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("devdan.spark needs PySpark: pip install 'devdan[spark]'", name=error.name) from error

from devdan.spark.query import evaluate, learn, predict

__all__ = ["evaluate", "learn", "predict"]
