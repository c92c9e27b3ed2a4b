"""Who may do what: tokens with scopes, from a file that may change at any time."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
from pathlib import Path

PREDICT, LABEL, ADMIN = "predict", "label", "admin"
SCOPES = (PREDICT, LABEL, ADMIN)
_LINE = re.compile(r"(\S+)\s+(\S+)")
_SHORTEST = 16
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class TokensError(ValueError):
    """The file of tokens is not valid; the message says where."""


class Tokens:
    """The tokens in a file: on each line a token and its scopes, such as ``predict,label``; ``#`` is for comments.

    Only digests are kept, and all are compared, so that the time it takes says nothing about them.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._scopes: dict[bytes, frozenset[str]] = {}
        self._reread()

    def scopes(self, authorization: str | None) -> frozenset[str] | None:
        """What the bearer of a header may do; None if it is nobody known.

        The token is given as ``Bearer`` or, for browsers, as the password of ``Basic``.
        """
        self._reread()
        digest = hashlib.sha256(_token(authorization).encode("utf-8", "surrogateescape")).digest()
        found = None
        for known, scopes in self._scopes.items():
            if hmac.compare_digest(known, digest):
                found = scopes
        return found

    def _reread(self) -> None:
        """Read the file if it has changed; while it cannot be read, or is not valid, those before still hold."""
        try:
            status = os.stat(self._path)
            stamp = status.st_mtime_ns, status.st_size, status.st_ino
            if stamp == self._stamp:
                return
            self._scopes = _read(self._path)
            self._stamp = stamp
        except (OSError, TokensError):
            if self._stamp is None:
                raise


def _read(path: Path) -> dict[bytes, frozenset[str]]:
    found = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            raise TokensError(f"line {number} of the tokens must have a token and its scopes, such as predict,label")
        scopes = frozenset(match[2].split(","))
        if not scopes <= set(SCOPES):
            raise TokensError(
                f"line {number} of the tokens: scopes must be among {', '.join(SCOPES)}, got {match[2]!r}"
            )
        if len(match[1]) < _SHORTEST:
            raise TokensError(f"line {number} of the tokens: a token must have at least {_SHORTEST} characters")
        found[hashlib.sha256(match[1].encode()).digest()] = scopes
    if not found:
        raise TokensError("the file of tokens has none")
    return found


def _token(authorization: str | None) -> str:
    kind, _, given = (authorization or "").partition(" ")
    if kind.lower() == "bearer":
        return given.strip()
    if kind.lower() == "basic":
        try:
            return base64.b64decode(given.strip(), validate=True).decode().partition(":")[2]
        except (binascii.Error, ValueError):
            return ""
    return ""
