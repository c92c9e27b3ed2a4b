"""Who has made which call that needs the scope ``admin``, when, and with what outcome: a table beside the log.

A call is written down before it is answered, and its outcome after: none goes without a trace. The oldest entries make
room for new ones. Tokens have names for it; neither they nor ids of samples are written down.
"""

from __future__ import annotations

from typing import NamedTuple

from devdan.service.database import Connection

KEPT = 10_000  # calls
_HOUR = 3600.0  # seconds in which refusals of the same call to the same sender are one entry
_COLUMNS = "number, at, who, what, stream, status, detail, times"


class AuditedCall(NamedTuple):
    """A call; ``status`` is that of HTTP, None if the process ended meanwhile, ``times`` how often it was refused."""

    number: int
    at: float
    who: str
    what: str
    stream: str
    status: int | None = None
    detail: str = ""
    times: int = 1


def begin(connection: Connection, at: float, who: str, what: str, stream: str) -> int:
    """Write down a call that is about to be answered; returns its number."""
    with connection.transaction():
        return _add(connection, at, who, what, stream, None)


def end(connection: Connection, number: int, status: int, detail: str) -> None:
    """Write down the outcome of a call."""
    with connection.transaction():
        connection.execute("UPDATE audit SET status = ?, detail = ? WHERE number = ?", (status, detail, number))


def refused(connection: Connection, at: float, who: str, what: str, status: int) -> None:
    """Write down that somebody may not make a call, who cannot fill the table with such."""
    with connection.transaction():
        same = connection.execute(
            "SELECT MAX(number) FROM audit WHERE who = ? AND what = ? AND status = ? AND at > ?",
            (who, what, status, at - _HOUR),
        )[0][0]
        if same is None:
            _add(connection, at, who, what, "", status)
        else:
            connection.execute("UPDATE audit SET times = times + 1 WHERE number = ?", (same,))


def _add(connection: Connection, at: float, who: str, what: str, stream: str, status: int | None) -> int:
    number = int(connection.execute("SELECT COALESCE(MAX(number), 0) + 1 FROM audit")[0][0])
    connection.execute(
        f"INSERT INTO audit ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, '', 1)", (number, at, who, what, stream, status)
    )
    connection.execute("DELETE FROM audit WHERE number <= ?", (number - KEPT,))
    return number


def calls(connection: Connection, before: int | None, most: int) -> list[AuditedCall]:
    """The latest calls first; those ``before`` a number."""
    where, values = ("", ()) if before is None else ("WHERE number < ? ", (before,))
    found = connection.execute(f"SELECT {_COLUMNS} FROM audit {where}ORDER BY number DESC LIMIT ?", (*values, most))
    return [AuditedCall(*row) for row in found]
