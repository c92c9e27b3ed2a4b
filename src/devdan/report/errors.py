"""What cannot be shown."""

from __future__ import annotations


class ReportError(ValueError):
    """A run that cannot be shown; the message is one line."""
