"""What people are told about a column: what became of it, and what they should know."""

from __future__ import annotations

from devdan.encoding import values
from devdan.encoding.column import RECURRING, SHARED, ColumnEncoding
from devdan.encoding.evidence import DATE, FLAG, NOMINAL, NUMBER, TIME

_A = {NUMBER: "a number", FLAG: "a flag", NOMINAL: "nominal", DATE: "a date", TIME: "a time"}


def became(column: ColumnEncoding) -> str:
    """The kind of a column and its values."""
    if column.left_out:
        return f"left out: {column.left_out}"
    if not column.kind:
        return "no value yet"
    said = column.kind
    if column.kind == NUMBER and column.evidence.dressed:
        said += f", written as text such as {column.evidence.dressed!r}"
    if column.kind in (DATE, TIME):
        said += ": " + (", ".join(column.periods) or "does not span a day yet")
    known = column.values
    if known:
        listed = ", ".join(repr(value) if "," in value else value for value in known[:6])
        listed += ", …" if len(known) > 6 else ""
        said += f": {len(known)} values ({listed})" if column.kind == NOMINAL else f", and words: {listed}"
    if column.odd:
        n, n_odd = column.evidence.n, column.evidence.n - column.evidence.of(column.kind)
        if n_odd == 1:
            said += f"; 1 of {n:,} values is none: {column.odd[:40]!r}"
        elif n_odd:
            said += f"; {n_odd:,} of {n:,} values are none, such as {column.odd[:40]!r}"
    if column.n_shared:
        said += f", further ones share {column.n_shared} inputs"
    return said


def notes(column: ColumnEncoding) -> list[str]:
    """What the user should know about the column."""
    name, said = column.name, []
    if column.left_out and not column.options.kind:
        way = "numeric" if column.kind == NUMBER else "nominal"
        said.append(f"the column {name!r} is left out: {column.left_out}; {way}=[{name!r}] (--{way}) keeps it")
    if column.before:
        said.append(
            f"the column {name!r} was taken for {_A[column.before]} at first, and is now read as {_A[column.kind]}"
        )
    if column.odd:
        said.append(
            f"the column {name!r} holds {column.kind}s, but also words such as {column.odd[:40]!r}, which are missing"
            + ("" if column.options.kind else f" or, once one has come {RECURRING} times, inputs of their own")
        )
    if column.kind == NUMBER:
        said += _on_numbers(column)
    if column.kind == DATE and column.evidence.doubtful and column.options.date_format == "iso":
        said += _on_dates(column)
    if column.respelled:
        said.append(
            f"the column {name!r} has words in several cases, such as {column.respelled[:40]!r}, which are taken for "
            f"the same; nominal=[{name!r}] (--nominal) tells them apart"
        )
    if column.n_shared:
        n = column.options.max_categories
        said.append(f"the column {name!r} has more than {n} values; further ones share {n // SHARED} inputs")
    return said


def _on_numbers(column: ColumnEncoding) -> list[str]:
    name, evidence = column.name, column.evidence
    said = []
    if evidence.dressed:
        said.append(f"the column {name!r} is read as numbers, written as text such as {evidence.dressed!r}")
    if len(evidence.marks) > 1:
        listed = ", ".join(sorted(evidence.marks)[:4])
        said.append(f"the column {name!r} has several currencies or units ({listed}), which are not told apart")
    is_usual = "," not in evidence.ambiguous and column.decimal == "."  # 1.234, as programs write it
    if evidence.ambiguous and evidence.commas == evidence.points and not is_usual:
        read = values.plain_text(values.number(evidence.ambiguous, column.decimal))
        sign = "comma" if "," in evidence.ambiguous else "point"
        why = f"nothing says whether the {sign} is a decimal one"
        if column.decimal == ",":
            why = "other columns have decimal commas"
        said.append(
            f"the column {name!r} has numbers such as {evidence.ambiguous!r}, read as {read}: {why}; "
            "decimal= (--decimal) says it"
        )
    return said


def _on_dates(column: ColumnEncoding) -> list[str]:
    if column.evidence.days_first != column.evidence.months_first:
        return []
    other = "mm/dd/yyyy"
    return [
        f"the column {column.name!r} has dates such as {column.evidence.doubtful!r}, read with the day first: nothing "
        f"says so; dates={{{column.name!r}: {other!r}}} (--dates {column.name}={other}) reads the month first"
    ]
