"""Where samples come from: a stream is an iterable of chunks (X, y)."""

from devdan.streams.arrays import chunks
from devdan.streams.synthetic import sea

__all__ = ["chunks", "sea"]
