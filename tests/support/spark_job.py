"""A query in a process of its own, to be killed: ``python tests/support/spark_job.py MASTER ROWS OUT``."""

import sys

import spark_engine

if __name__ == "__main__":
    master, rows, out = sys.argv[1:]
    spark_engine.query(spark_engine.session(master), rows, out).awaitTermination()
