"""Lazy loading of a package's public names, so that importing the package takes no time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def exports(package: str, **homes: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package (PEP 562), from its names and the modules that define them.

    Type checkers read the imports beside it: it goes into the ``else`` of ``if TYPE_CHECKING``.

    >>> getattr_, dir_ = exports("devdan", DEVDAN="model.devdan")
    >>> getattr_("DEVDAN")
    <class 'devdan.model.devdan.DEVDAN'>
    >>> getattr_("DEVDEN")
    Traceback (most recent call last):
    AttributeError: module 'devdan' has no attribute 'DEVDEN'
    """
    namespace = vars(sys.modules[package])

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        namespace[name] = value = getattr(import_module(f"{package}.{homes[name]}"), name)
        return value

    return find, lambda: sorted({*namespace, *homes})
