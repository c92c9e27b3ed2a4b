"""Memory with names: a class lists the fields of a row of 64-bit words, for Python and for compiled code alike.

>>> class Pair(Block):
...     max_features: int = integer()
...     weights: Floats = numbers(N, 2)
...     lowest: Floats = numbers(N, empty=math.inf)
>>> pair = Pair.empty(Sizes(features=3))
>>> pair.weights[1] = 5, 7
>>> pair.weights.shape, pair.words[1:].tolist()
((3, 2), [0.0, 0.0, 5.0, 7.0, 0.0, 0.0, inf, inf, inf])

In compiled code ``Pair(words)`` and ``pair.weights`` mean the same. There a block is no more than an address and its
sizes, so that it is passed on at no cost, and a field is an array made where it is used.

A subclass adds fields after those of its parent, so that its words are a block of the parent's, too:
``Parent(words)``, or ``Parent(block)``, has the fields that both have.
"""

from __future__ import annotations

import ctypes
import math
from collections import Counter
from functools import cache, lru_cache, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import (
    lower_builtin,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
    type_callable,
)
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import from_dtype

from devdan.arrays import Floats, Integers

if TYPE_CHECKING:
    from typing_extensions import Self

N, R, M, E, K, F, U = SIZES = (
    "max_features",
    "max_hidden",
    "max_classes",
    "max_events",
    "max_samples",
    "n_fields",
    "n_field_units",
)
CACHE_LINE = 8  # words


class Sizes(NamedTuple):
    """How much room there is."""

    features: int = 0
    hidden: int = 0
    classes: int = 0
    events: int = 0
    samples: int = 0
    fields: int = 0  # of each feature
    field_units: int = 0  # hidden units that see these


class Field:
    """Words of one type: a single one, or an array whose shape may name sizes. ``same`` are words of another field.

    Where nothing is stored yet, there is ``empty``. An ``aligned`` field starts with a cache line, if the block does.
    """

    def __init__(
        self,
        dtype: type[np.generic],
        *shape: int | str,
        same: Field | None = None,
        empty: float = 0.0,
        aligned: bool = False,
    ) -> None:
        self.dtype, self.shape, self.same, self.empty, self.aligned = np.dtype(dtype), shape, same, empty, aligned
        self.name = ""
        self.start: int | None = None  # where it begins, if that does not depend on sizes
        self.end: int | None = None  # where it ends, if that does not either

    def __set_name__(self, block: type, name: str) -> None:
        self.name = name

    def __get__(self, block: Block | None, owner: type | None = None) -> Any:
        if block is None:
            return self
        if not self.shape and self.start is not None:  # at once: single samples are mostly this
            return block.words.view(self.dtype).item(self.start)
        array = self._array(block)
        return array if self.shape else array[()].item()

    def __set__(self, block: Block, value: float) -> None:
        self._array(block)[...] = value

    def _array(self, block: Block) -> Any:
        if self.name not in block.arrays:
            if self.end is not None:  # at once, too
                shape, words = self.shape, block.words[self.start : self.end]
            else:
                start, shape = block.places(block.sizes)[self.name]
                words = block.words[start : start + math.prod(shape)]
            block.arrays[self.name] = words.view(self.dtype).reshape(shape)
        return block.arrays[self.name]


def integer() -> Any:
    """One integer."""
    return Field(np.int64)


def number() -> Any:
    """One float."""
    return Field(np.float64)


def integers(*shape: int | str) -> Any:
    """An array of integers."""
    return Field(np.int64, *shape)


def numbers(*shape: int | str, empty: float = 0.0, aligned: bool = False) -> Any:
    """An array of floats."""
    return Field(np.float64, *shape, empty=empty, aligned=aligned)


def randomness() -> Any:
    """The one word of the random generator, as an array."""
    return Field(np.uint64, 1)


def one_row(field: Any) -> Any:
    """The words of a field of several rows once more, as a single row."""
    return Field(np.float64, *field.shape, same=field)


class Block:
    """Words with the fields that a subclass lists, one after the other; reading and writing goes through to the words.

    The sizes are fields before all whose place depends on them, or those of another block.
    A size that is no field is 0.
    """

    _size_places: tuple[int | None, ...] = ()

    def __init__(self, words: Floats | Block, sized_as: Block | None = None) -> None:
        self.words: Floats = words.words if isinstance(words, Block) else words
        self._sized_as = sized_as
        self.arrays: dict[str, Any] = {}  # of the fields that were asked for

    @property
    def sizes(self) -> Sizes:
        """The room that there is."""
        if self._sized_as is not None:
            return self._sized_as.sizes
        words = self.words.view(np.int64)
        return Sizes(*[0 if place is None else words.item(place) for place in self._size_places])

    @classmethod
    def empty(cls, sizes: Sizes, words: Floats | None = None) -> Self:
        """A block with this much room and nothing in it, in these words or in new ones."""
        block = cls.__new__(cls)
        Block.__init__(block, np.empty(cls.n_words(sizes)) if words is None else words)
        block.words[:] = 0.0
        for name, field in cls.fields().items():
            if field.empty != 0.0:
                start, shape = cls.places(sizes)[name]
                block.words[start : start + math.prod(shape)] = field.empty
        integers = block.words.view(np.int64)
        for place, size in zip(cls._size_places, sizes, strict=True):
            if place is not None:
                integers[place] = size
        return block

    def __init_subclass__(cls) -> None:
        start = 0
        for field in cls.fields().values():
            if field.same is None:
                start += -start % CACHE_LINE if field.aligned else 0
                field.start = start
                lengths = [size for size in field.shape if isinstance(size, int)]
                if len(lengths) < len(field.shape):
                    break
                field.end = start = start + math.prod(lengths)
        cls._size_places = tuple(cls.fields()[size].start if size in cls.fields() else None for size in SIZES)
        _compile(cls)

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles share their words with nothing else, so that the arrays are rebuilt from them."""
        return self.__dict__ | {"arrays": {}}

    @classmethod
    @cache
    def fields(cls) -> dict[str, Field]:
        """All fields in their order, those of the parent first."""
        own = {name: field for name, field in vars(cls).items() if isinstance(field, Field)}
        parent = cls.__mro__[1]
        return {**parent.fields(), **own} if issubclass(parent, Block) else own

    @classmethod
    @lru_cache(maxsize=4096)
    def places(cls, sizes: Sizes) -> dict[str, tuple[int, tuple[int, ...]]]:
        """Where each field begins, and its shape."""
        room, end = dict(zip(SIZES, sizes, strict=True)), 0
        found: dict[str, tuple[int, tuple[int, ...]]] = {}
        for name, field in cls.fields().items():
            shape = tuple(room[size] if isinstance(size, str) else size for size in field.shape)
            if field.same is not None:
                found[name] = found[field.same.name][0], (math.prod(shape),)
            else:
                end += -end % CACHE_LINE if field.aligned else 0
                found[name] = end, shape
                end += math.prod(shape)
        return found

    @classmethod
    @lru_cache(maxsize=4096)
    def n_words(cls, sizes: Sizes) -> int:
        """How many words there are in all."""
        return max(start + math.prod(shape) for start, shape in cls.places(sizes).values())


def floats_at(address: int, length: int) -> Floats:
    """The floats that lie at an address; whoever keeps it keeps them alive."""
    return np.ctypeslib.as_array((ctypes.c_double * int(length)).from_address(int(address)))


def integers_at(address: int, length: int) -> Integers:
    """The integers that lie at an address."""
    return floats_at(address, length).view(np.int64)


def fetch_ahead(address: int, length: int) -> None:
    """In compiled code: let the processor fetch the words at an address from memory while it does something else."""


# --- The same in compiled code -----------------------------------------------------------------------------------

_WORD = ir.IntType(64)


class _BlockType(types.Type):  # type: ignore[misc]
    """A block's type: which fields it has."""

    def __init__(self, block: type[Block]) -> None:
        self.fields = block.fields()
        super().__init__(name=block.__qualname__)

    def type_of(self, name: str) -> Any:
        """A number or an array."""
        field = self.fields[name]
        word = from_dtype(field.dtype)
        n_axes = 1 if field.same is not None else len(field.shape)
        return types.Array(word, n_axes, "C") if field.shape else word


@register_model(_BlockType)
class _BlockModel(models.StructModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: _BlockType) -> None:
        members = [("address", types.CPointer(types.float64)), *((size, types.intp) for size in SIZES)]
        super().__init__(manager, kind, members)


@infer_getattr
class _BlockFields(AttributeTemplate):  # type: ignore[misc]
    key = _BlockType

    def generic_resolve(self, kind: _BlockType, name: str) -> Any:
        return kind.type_of(name) if name in kind.fields else None


def _product(builder: Any, block: Any, shape: tuple[int | str, ...]) -> Any:
    """How many words an array of this shape takes."""
    factor = math.prod(size for size in shape if isinstance(size, int))
    sizes = [getattr(block, size) for size in shape if isinstance(size, str)]
    return reduce(builder.mul, sizes if factor == 1 and sizes else [_WORD(factor), *sizes])


def _address(context: Any, builder: Any, kind: _BlockType, block: Any, name: str) -> Any:
    """Where a field begins, as a pointer to its type of words."""
    field, place = kind.fields[name], _WORD(0)
    counts: Counter[tuple[str, ...]] = Counter()  # of the fields since the latest aligned one, by their sizes

    def end() -> Any:
        terms = [_product(builder, block, (count, *sizes)) for sizes, count in counts.items()]
        return reduce(builder.add, terms, place)

    for other in kind.fields.values():
        if other.aligned:
            place = builder.and_(builder.add(end(), _WORD(CACHE_LINE - 1)), _WORD(-CACHE_LINE))
            counts.clear()
        if other is (field.same or field):
            break
        if other.same is None:
            sizes = tuple(size for size in other.shape if isinstance(size, str))
            counts[sizes] += math.prod(size for size in other.shape if isinstance(size, int))
    pointer = builder.gep(block.address, [end()], inbounds=True)
    return builder.bitcast(pointer, context.get_data_type(from_dtype(field.dtype)).as_pointer())


@lower_getattr_generic(_BlockType)  # type: ignore[untyped-decorator]
def _get(context: Any, builder: Any, kind: _BlockType, value: Any, name: str) -> Any:
    block = cgutils.create_struct_proxy(kind)(context, builder, value=value)
    pointer, field = _address(context, builder, kind, block, name), kind.fields[name]
    if not field.shape:
        return builder.load(pointer)
    if field.same is not None:
        shape = [_product(builder, block, field.shape)]
    else:
        shape = [_product(builder, block, (size,)) for size in field.shape]
    strides = [_WORD(8)]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    array = make_array(kind.type_of(name))(context, builder)
    populate_array(array, data=pointer, shape=shape, strides=strides, itemsize=_WORD(8), meminfo=None)
    return array._getvalue()


@lower_setattr_generic(_BlockType)  # type: ignore[untyped-decorator]
def _set(context: Any, builder: Any, signature: Any, args: tuple[Any, Any], name: str) -> None:
    kind = signature.args[0]
    block = cgutils.create_struct_proxy(kind)(context, builder, value=args[0])
    builder.store(args[1], _address(context, builder, kind, block, name))


def _compile(block: type[Block]) -> None:
    """Let compiled code make such blocks: of words that hold their sizes, with the sizes of a block, or of a block."""
    kind = _BlockType(block)

    @type_callable(block)  # type: ignore[untyped-decorator]
    def typed(context: Any) -> Any:
        return lambda words, sized_as=None: kind

    def made(context: Any, builder: Any, words: Any, array_type: Any, sizes: Any) -> Any:
        proxy = cgutils.create_struct_proxy(kind)(context, builder)
        proxy.address = make_array(array_type)(context, builder, words).data
        for size, value in zip(SIZES, sizes, strict=True):
            setattr(proxy, size, value)
        return proxy._getvalue()

    @lower_builtin(block, types.Array)  # type: ignore[untyped-decorator]
    def of_words(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = make_array(signature.args[0])(context, builder, args[0]).data
        first = builder.bitcast(data, _WORD.as_pointer())
        places = block._size_places
        sizes = [_WORD(0) if place is None else builder.load(builder.gep(first, [_WORD(place)])) for place in places]
        return made(context, builder, args[0], signature.args[0], sizes)

    @lower_builtin(block, types.Array, _BlockType)  # type: ignore[untyped-decorator]
    def sized_as(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        other = cgutils.create_struct_proxy(signature.args[1])(context, builder, value=args[1])
        return made(context, builder, args[0], signature.args[0], [getattr(other, size) for size in SIZES])

    @lower_builtin(block, _BlockType)  # type: ignore[untyped-decorator]
    def of_block(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return args[0]  # all are an address and sizes


def _compile_lookup(function: Any, kind: Any) -> None:
    """Let compiled code find an array by its address."""

    @type_callable(function)  # type: ignore[untyped-decorator]
    def typed(context: Any) -> Any:
        return lambda address, length: kind

    @lower_builtin(function, types.Integer, types.Integer)  # type: ignore[untyped-decorator]
    def found(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], context.get_data_type(kind.dtype).as_pointer())
        array = make_array(kind)(context, builder)
        populate_array(array, data=pointer, shape=[args[1]], strides=[_WORD(8)], itemsize=_WORD(8), meminfo=None)
        return array._getvalue()


_compile_lookup(floats_at, types.Array(types.float64, 1, "C"))
_compile_lookup(integers_at, types.Array(types.int64, 1, "C"))


@type_callable(fetch_ahead)  # type: ignore[untyped-decorator]
def _typed_fetch(context: Any) -> Any:
    return lambda address, length: types.none


@lower_builtin(fetch_ahead, types.Integer, types.Integer)  # type: ignore[untyped-decorator]
def _fetch(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
    prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    with cgutils.for_range_slice(builder, _WORD(0), args[1], _WORD(8), _WORD) as (word, _):
        pointer = builder.inttoptr(builder.add(args[0], builder.mul(word, _WORD(8))), byte)
        builder.call(prefetch, [pointer, flag(0), flag(3), flag(1)])  # to read, to all caches, data
    return context.get_dummy_value()
