"""What can be read, as tables for docs/formats.md, from the table of readers itself.

``python website/formats_page.py`` writes them into the page.
"""

from __future__ import annotations

import re
from pathlib import Path

from devdan.streams.databases import SCHEMES
from devdan.streams.files import READERS
from devdan.streams.textfile import COMPRESSIONS

PAGE = Path(__file__).parents[1] / "docs" / "formats.md"
_FILES = ["| format | endings | packed | standard input | what is read |", "|---|---|---|---|---|"]
_DATABASES = ["| database | address | needs |", "|---|---|---|"]


def tables() -> dict[str, str]:
    """The tables of the page, by the name in its marks."""
    packed = ", ".join(f"`{ending}`" for ending in (*COMPRESSIONS, ".zip"))
    files = [
        f"| {reader.name} | {', '.join(f'`{ending}`' for ending in reader.endings)} "
        f"| {packed if reader.is_text else '–'} | {'yes' if reader.from_stdin else '–'} | {reader.about} |"
        for reader in READERS
    ]
    databases = [f"| {each.name} | `{each.address}` | {each.needs} |" for each in SCHEMES]
    return {"files": "\n".join([*_FILES, *files]), "databases": "\n".join([*_DATABASES, *databases])}


def page(text: str) -> str:
    """The page with these tables."""
    for name, table in tables().items():
        mark = f"<!-- {name}: begin -->\n"
        text = re.sub(f"(?s){mark}.*?<!-- {name}: end -->", lambda _: f"{mark}{table}\n<!-- {name}: end -->", text)  # noqa: B023
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
