"""Who may send which requests: tokens with scopes; without tokens, only this machine, and no page of another origin."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

PREDICT, LABEL, ADMIN = "predict", "label", "admin"
SCOPES = (PREDICT, LABEL, ADMIN)
LOOPBACK = ("127.0.0.1", "::1", "localhost")
_LINE = re.compile(r"(\S+)\s+(\S+)(?:\s+(\S+))?")
_NAME = re.compile(r"[\w.@-]{1,64}")
_SHORTEST = 16
_OPEN = re.compile(r"/v2/health/(live|ready)")
_NEEDS = (  # the first that matches; anything else needs a token of any scope
    ("POST", re.compile(r"/v1/streams/{stream}/predict|/v2/models/{stream}/infer"), PREDICT),
    ("POST", re.compile(r"/v1/streams/{stream}/(labels|samples)"), LABEL),
    ("GET", re.compile(r"/v1/streams/{stream}/model"), ADMIN),
    ("POST", re.compile(r"/v1/streams/{stream}/retry"), ADMIN),
    ("GET", re.compile(r"/v1/audit"), ADMIN),
    ("PUT", re.compile(r".*"), ADMIN),
    ("DELETE", re.compile(r".*"), ADMIN),
)
_CHALLENGE = {"www-authenticate": 'Basic realm="devdan", charset="UTF-8"'}


class TokensError(ValueError):
    """The file of tokens is not valid; the message says where."""


class Holder(NamedTuple):
    """The name of a token and what it is for."""

    name: str
    scopes: frozenset[str]


class Tokens:
    """The tokens in a file: on each line a token, its scopes, such as ``predict,label``, and perhaps a name, by which
    the audit knows it; ``#`` is for comments.

    Only digests are kept, and a token is compared with all of them, so that timing reveals nothing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._known: dict[bytes, Holder] = {}
        self._reread()

    def holder(self, authorization: str) -> Holder | None:
        """Who has the token in a header; None if it is unknown.

        The header has the token as ``Bearer`` or, for browsers, as the password of ``Basic``.
        """
        self._reread()
        digest = hashlib.sha256(_token(authorization).encode("utf-8", "surrogateescape")).digest()
        found: Holder | None = None
        for known, holder in self._known.items():
            if hmac.compare_digest(known, digest):
                found = holder
        return found

    def _reread(self) -> None:
        """Read the file if it has changed; while it cannot be read, or is not valid, the previous tokens hold."""
        try:
            status = os.stat(self._path)
            stamp = status.st_mtime_ns, status.st_size, status.st_ino
            if stamp == self._stamp:
                return
            self._known = _read(self._path)
            self._stamp = stamp
        except (OSError, TokensError):
            if self._stamp is None:
                raise


def _read(path: Path) -> dict[bytes, Holder]:
    found: dict[bytes, Holder] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            raise TokensError(
                f"line {number} of the tokens must have a token, its scopes, such as predict,label, and perhaps a name"
            )
        scopes = frozenset(match[2].split(","))
        if not scopes <= set(SCOPES):
            raise TokensError(
                f"line {number} of the tokens: scopes must be among {', '.join(SCOPES)}, got {match[2]!r}"
            )
        if len(match[1]) < _SHORTEST:
            raise TokensError(f"line {number} of the tokens: a token must have at least {_SHORTEST} characters")
        name = match[3] or f"line {number}"
        if match[3] is not None and not _NAME.fullmatch(name):
            raise TokensError(
                f"line {number} of the tokens: a name must have up to 64 letters, digits, dots, dashes, underscores or "
                f"@, got {name[:100]!r}"
            )
        found[hashlib.sha256(match[1].encode()).digest()] = Holder(name, scopes)
    if not found:
        raise TokensError("the file of tokens has none")
    return found


def _token(authorization: str) -> str:
    kind, _, given = authorization.partition(" ")
    if kind.lower() == "bearer":
        return given.strip()
    if kind.lower() == "basic":
        try:
            return base64.b64decode(given.strip(), validate=True).decode().partition(":")[2]
        except (binascii.Error, ValueError):
            return ""
    return ""


class Refusal(NamedTuple):
    """Why a request is refused."""

    status: int
    error: str
    headers: Mapping[str, str] = {}


class Guard:
    """Refuses requests of unknown senders, and those that a page of another origin makes a user's browser send.

    Browsers tell the origin of such requests. Without tokens, a page could also give itself this machine's address
    under a name of its own (DNS rebinding), so only the names of this machine are answered.
    """

    def __init__(self, tokens: Tokens | None, local_only: bool) -> None:
        self._tokens, self._local_only = tokens, local_only

    @property
    def needs_tokens(self) -> bool:
        return self._tokens is not None

    def sender(self, scope: Mapping[str, Any]) -> str:
        """Who has sent an accepted request: by its token or, without tokens, by its address."""
        if self._tokens is None:
            return str((scope.get("client") or ("",))[0])
        authorization = _authorization(scope)
        return hashlib.sha256(_token(authorization).encode("utf-8", "surrogateescape")).hexdigest()

    def name(self, scope: Mapping[str, Any]) -> str | None:
        """The name of who has sent a request, for the audit, or the address; None if the token is unknown."""
        if self._tokens is None:
            return self.sender(scope)
        holder = self._tokens.holder(_authorization(scope))
        return None if holder is None else holder.name

    def refusal(self, scope: Mapping[str, Any]) -> Refusal | None:
        """Why the request of an ASGI scope is refused; None if it is not."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        path, method = scope["path"], scope["method"]
        kind = headers.get(b"content-type", b"application/json").partition(b";")[0].strip().lower()
        if method in ("POST", "PUT") and kind != b"application/json":
            return Refusal(415, "the body must be JSON, with the header Content-Type: application/json")
        origin = headers.get(b"origin")
        if origin is not None and origin.partition(b"://")[2] != headers.get(b"host"):
            return Refusal(403, "cross-origin requests are refused")
        if self._local_only:
            host = headers.get(b"host", b"").decode("latin-1")
            if re.sub(r":\d+$", "", host).strip("[]").lower() not in LOOPBACK:
                return Refusal(421, "without tokens, the service answers only to localhost and 127.0.0.1")
        if self._tokens is None or is_open(path):
            return None
        if self._tokens.holder(_authorization(scope)) is None:
            return Refusal(401, "a token is needed: Authorization: Bearer …", _CHALLENGE)
        return None

    def lacks(self, scope: Mapping[str, Any], needed: str | None) -> Refusal | None:
        """Why a request that is not refused may not be answered by an operation that needs a scope.

        The operation says what it needs: its route and another pattern for its path could differ in what they match.
        """
        if self._tokens is None or needed is None:
            return None
        holder = self._tokens.holder(_authorization(scope))
        if holder is None or needed not in holder.scopes:
            return Refusal(403, f"the token lacks the scope {needed}")
        return None


def _authorization(scope: Mapping[str, Any]) -> str:
    return bytes(dict(scope["headers"]).get(b"authorization", b"")).decode("latin-1")


def is_open(path: str) -> bool:
    """Whether a request to a path needs no token."""
    return _OPEN.fullmatch(path) is not None


def scope_for(method: str, path: str) -> str | None:
    """The scope that the operation of a path needs; None if any token will do."""
    return next((scope for verb, where, scope in _NEEDS if verb == method and where.fullmatch(path)), None)
