"""Which pages cannot be tried: their examples need packages that are not there for every Python."""

from importlib.util import find_spec

NEEDED = {"docs/capymoa.md": "capymoa", "docs/drift.md": "river", "docs/river.md": "river"}
collect_ignore = [page for page, package in NEEDED.items() if find_spec(package) is None]
