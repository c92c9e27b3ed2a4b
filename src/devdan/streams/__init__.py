"""Where samples come from: generators, files, data frames, River's datasets and the paper's nine streams."""

from typing import TYPE_CHECKING

from devdan import lazy

if TYPE_CHECKING:
    from devdan.streams.sources import open_stream, open_table
    from devdan.streams.stream import Stream, StreamError
    from devdan.streams.synthetic import hyperplane, sea
else:
    __getattr__, __dir__ = lazy.exports(
        __name__,
        Stream="stream",
        StreamError="stream",
        hyperplane="synthetic",
        open_stream="sources",
        open_table="sources",
        sea="synthetic",
    )

__all__ = ["Stream", "StreamError", "hyperplane", "open_stream", "open_table", "sea"]
