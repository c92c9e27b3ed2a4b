"""How functions are compiled: entries for Python, and what these consist of.

Compiled entries are kept on disk by Numba, stamped with the source of their own file. That is too little: an entry also
contains what it calls in other files. So each is stamped with all sources of the kernel. Compiled code elsewhere may
use the kernel's functions, but is otherwise one file.

Numba makes machine code of each compiled function for itself, and once more within each function that calls it. The
kernel has a hundred functions that only compiled code calls. :class:`Part` leaves out their own machine code, for two
reasons. An entry would call it in the process that compiled both, but in later ones, where it is loaded from the cache,
the copy within itself, which may round differently: the same seed would not give the same bits. And it would take half
as long again to compile all (32 s of CPU instead of 19, for ``devdan compile`` on an empty cache).
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from importlib import resources
from typing import Any, TypeVar, cast

from numba import config, njit, types
from numba.core import cgutils, event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import LoweringPass, register_pass
from numba.core.typed_passes import NativeLowering
from numba.extending import lower_builtin, type_callable

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    # Sums may be reordered and products fused, so that loops vectorise; NaN and infinity keep their meaning.
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "nogil": True,
    "no_cfunc_wrapper": True,
    "no_rewrites": True,  # of whole-array expressions, of which there are none: looking for them takes a while
    "_nrt": False,  # nothing is allocated, so references need not be counted, which would take longer than a small step
}


def source_stamp(package: str = "devdan.kernel") -> str:
    """A hash of all sources of a package."""
    files = sorted(resources.files(package).iterdir(), key=lambda file: file.name)
    sources = (file.name.encode() + file.read_bytes() for file in files if file.name.endswith(".py"))
    return hashlib.sha256(b"\0".join(sources)).hexdigest()


_STAMP = source_stamp()


def entry(function: F) -> F:
    """Compile a function called from Python, cached on disk if a cache folder is writable."""
    if config.DISABLE_JIT:
        return function
    try:
        made = njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # neither the package's folder nor the user's cache is writable
        return cast(F, njit(**_OPTIONS)(function))
    index = made._cache._cache_file
    index._source_stamp = index._source_stamp, _STAMP
    return cast(F, made)


def compiled(function: F) -> F:
    """A function for compiled code. It has no machine code of its own, so Python must not call it."""
    return cast(F, njit(no_cpython_wrapper=True, pipeline_class=_Parts, **_OPTIONS)(function))


def inlined(function: F) -> F:
    """A function that becomes a part of its callers before they are typed: it may return what Numba cannot pass on."""
    return cast(F, njit(inline="always", **_OPTIONS)(function))


def by_address(function: Callable[..., Any], signature: Any) -> Callable[[int, tuple[Any, ...]], Any]:
    """How compiled code calls an entry at its address: what runs is the very machine code that Python calls.

    Called by its name it would be compiled into the caller once more, and such a copy may round differently.
    """

    def call(address: int, given: tuple[Any, ...]) -> Any:
        return function(*given)

    @type_callable(call)  # type: ignore[untyped-decorator]
    def typed(context: Any) -> Any:
        return lambda address, given: signature.return_type

    @lower_builtin(call, types.Any, types.Any)  # type: ignore[untyped-decorator]
    def called(context: Any, builder: Any, used: Any, args: Any) -> Any:
        kind = context.call_conv.get_function_type(signature.return_type, signature.args)
        pointer = builder.inttoptr(args[0], kind.as_pointer())
        values = cgutils.unpack_tuple(builder, args[1])
        cast_values = [
            context.cast(builder, value, have, want)
            for value, have, want in zip(values, used.args[1].types, signature.args, strict=True)
        ]
        _, result = context.call_conv.call_function(
            builder, pointer, signature.return_type, signature.args, cast_values
        )
        return result

    return call


def address_of(function: Any, signature: Any) -> int:
    """Where the machine code of an entry is; it is compiled, or loaded from the cache, if it is not there yet."""
    if config.DISABLE_JIT:
        return 0
    function.compile(signature.args)
    compiled_for = function.overloads[signature.args]
    return int(compiled_for.library.get_pointer_to_function(compiled_for.fndesc.llvm_func_name))


# --- Compiling without machine code: Numba's pipeline with another library for what comes out of it ---------------


class Part(JITCodeLibrary):  # type: ignore[misc]
    """The code of a function, with that of the functions it calls, as it is before optimisation."""

    def finalize(self) -> None:
        """Take in the code of what is called; callers link this library, then optimise all of it."""
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._final_module.verify()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """There is none."""
        return 0

    @property
    def codegen(self) -> Any:
        """Numba's own, except for one step, which needs machine code."""
        return _WithoutEnvironment(self._codegen)


class _WithoutEnvironment:
    """A code generator that does not set an environment, which only code that raises or boxes would read."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        """Nothing to do."""


@register_pass(mutates_CFG=False, analysis_only=False)
class _IntoPart(LoweringPass):  # type: ignore[misc]
    _name = "devdan_into_part"

    def __init__(self) -> None:
        LoweringPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        state.library = Part(state.targetctx.codegen(), state.func_id.func_qualname)
        return True


class _Parts(CompilerBase):  # type: ignore[misc]
    """Numba's pipeline, whose lowering writes into a part."""

    def define_pipelines(self) -> list[Any]:
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes = [step for step, _ in manager.passes]
        manager.add_pass_after(_IntoPart, passes[passes.index(NativeLowering) - 1])
        manager.finalize()
        return [manager]


# --- A word to the user when the kernel is compiled, since a call then takes far longer than usual ----------------

_log = logging.getLogger("devdan")


class _CompilationNotice(event.Listener):  # type: ignore[misc]
    """Logs one line at the first compilation in a process; loading from the disk cache does not count."""

    said = False

    def on_start(self, event: Any) -> None:
        if not self.said and event.data["dispatcher"].py_func.__module__.startswith("devdan."):
            self.said = True
            _log.warning(
                "devdan is compiling its kernel for this machine: this takes a few seconds, once per installation; "
                "`devdan compile` does it ahead of time"
            )

    def on_end(self, event: Any) -> None:
        """Do nothing."""


def omit_notice() -> None:
    """Say nothing in this process, since what is going on is said otherwise."""
    _notice.said = True


_notice = _CompilationNotice()
event.register("numba:compile", _notice)
