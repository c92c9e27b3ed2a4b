"""Adapts docstrings for the API page where mkdocstrings' NumPy parser falls short."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

from devdan.model import options

ROLE = re.compile(r":(?:meth|class|func|attr|mod):(`+)~?(?:[\w.]+\.)?(\w+)(`+)")
ATTRIBUTES = re.compile(r"(?<=^Attributes\n----------\n)(?:.+\n?)+", re.MULTILINE)
ATTRIBUTE = re.compile(r"^(\w[\w, ]*) : ", re.MULTILINE)
FIRST_EXAMPLE = re.compile(r"^>>> ", re.MULTILINE)


class Readable(Extension):
    """Fill in options, turn roles into code, keep an attribute's text from being read as its type, move doctests."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is None:
            return
        text = ROLE.sub(r"\1\2\3", options.filled(obj.docstring.value))
        text = ATTRIBUTES.sub(lambda section: ATTRIBUTE.sub(r"\1\n    ", section[0]), text)
        if "Examples\n---" not in text:
            text = FIRST_EXAMPLE.sub("Examples\n--------\n>>> ", text, count=1)
        obj.docstring.value = text
