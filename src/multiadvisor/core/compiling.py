"""Compiling with numba, and a cache of machine code that cannot go stale.

Numba's own cache looks at one source file only, while a compiled loop inlines functions from several. The cache
folder is therefore named after everything that was inlined: the sources of this package that hold compiled code, and
the code and constants of the world's functions and of all that they call.
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import hashlib
import inspect
import os
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import NativeLowering

_PACKAGE = Path(__file__).parent.parent
# Without numba's runtime no array can be made inside, and none is counted: its atomic counters took a third of a step.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False, "_nrt": False}

# The modules whose code may be inlined into a compiled loop: an edit of any of them voids the cache.
_RULES = sorted(path.stem for path in (_PACKAGE / "learners" / "tabular" / "rules").glob("[a-z]*.py"))
INLINED = (
    "core/compiling",
    "core/rng",
    "core/plannings",
    "core/aggregations",
    "core/mappings",
    "learners/tabular/kernel",
    "learners/tabular/records",
    "learners/tabular/switch",
    "learners/tabular/lanes",
    "learners/tabular/thread_groups",
    "learners/gvf/bank",
    "learners/tabular/state_index",
    "envs/slots",
    "envs/worlds/maze",
    "envs/worlds/finite",
    "envs/compiled_env",
    "learners/dqn/replay",
    *(f"learners/tabular/rules/{name}" for name in _RULES),
)
_NOT_KEPT = "each time: a world in a script, or a cache that cannot be written; a world in a module is kept"


@functools.cache
def _package_digest() -> str:
    parts = [_PACKAGE / f"{name}.py" for name in INLINED]
    digest = hashlib.sha256(f"numba {numba.__version__} numpy {np.__version__}".encode())
    for part in parts:
        digest.update(part.read_bytes())
    return digest.hexdigest()[:16]


def cache_root() -> Path:
    """Where machine code is kept: NUMBA_CACHE_DIR where that is set, else the user's cache folder."""
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(given) / "multiadvisor"
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "multiadvisor"


def _folder(extra: str = "") -> Path | None:
    """The cache folder for code that also depends on `extra`; None where it cannot be written."""
    folder = cache_root() / (_package_digest() + (f"-{extra}" if extra else ""))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def _njit(function: Callable[..., Any], folder: Path | None, **options: Any) -> Any:
    options |= {**_OPTIONS, "pipeline_class": _Compiler}
    if folder is None:
        return numba.njit(function, **options)
    # numba reads CACHE_DIR while it decorates and at no other time.
    config: Any = numba.config
    before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        return numba.njit(function, cache=True, **options)
    finally:
        config.CACHE_DIR = before


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function with the options every loop here shares (no fast-math: runs must give the same bytes).

    Use it for the functions of your own world as well:

    >>> import numpy as np
    >>> from multiadvisor import compiled
    >>> @compiled
    ... def double(x):
    ...     return 2 * x
    >>> double(21)
    42
    """
    # Small functions are inlined into a loop that is cached itself; a cache of their own would only cost files.
    whole, part = numba.njit(function, forceinline=True, **_OPTIONS), inside(function)
    # what Python calls is compiled when Python calls it, and compiled code has the part
    whole.get_call_template, whole.get_overload = part.get_call_template, part.get_overload
    return whole


@contextmanager
def _no_collection() -> Iterator[None]:
    """Whatever is made in a compilation is used to its end: to look for garbage took about a tenth of the time."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


class _Compiler(CompilerBase):
    """Numba's compiler, faster: the machine code is the same."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile a function."""
        with _no_collection():
            return super().compile_extra(func)

    def define_pipelines(self) -> list[PassManager]:
        """The passes of any function."""
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]


class _PartLibrary(JITCodeLibrary):
    """The code of a function that is written into a loop: what is optimised, and becomes machine code, is the loop."""

    optimised = False

    def _optimize_final_module(self) -> None:
        if self.optimised:
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(NativeLowering):
    _name = "lowering_of_a_part"

    def run_pass(self, state: Any) -> bool:
        """As for any function, but that there is nothing to be called from outside."""
        state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.optimised = hasattr(state.func_id.func, "optimised")
        state.flags.no_compile = True
        super().run_pass(state)
        # the key under which calls find it: the dispatcher keeps nothing but built-in functions, and each needs its own
        found = state["cr"] = state["cr"]._replace(cfunc={}.popitem)
        state.targetctx.insert_user_function(found.cfunc, found.fndesc, [state.library])
        return True


class _PartCompiler(_Compiler):
    """Numba optimises every function by itself and makes machine code of it, which for parts took half of the time."""

    def define_pipelines(self) -> list[PassManager]:
        """The passes of any function, with a lowering of our own."""
        [passes] = super().define_pipelines()
        passes.passes = [(_PartLowering if each is NativeLowering else each, about) for each, about in passes.passes]
        passes.finalize()
        return [passes]


# Numba makes a wrapper for calls from Python for every function, which for many arrays takes longer than the function.
_INSIDE = {**_OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _PartCompiler}


def inside(function: Callable[..., Any]) -> Any:
    """`compiled`, for functions that only compiled code ever calls: Python must not."""
    return numba.njit(function, forceinline=True, **_INSIDE)


def inside_optimised(function: Callable[..., Any]) -> Any:
    """`inside`, for a loop over arrays that is faster where it is optimised before it is written into another."""
    function.optimised = True  # type: ignore[attr-defined]
    return inside(function)


def called(function: Callable[..., Any]) -> Any:
    """`inside`, for a large function that several places share: it is called and not written into each of them."""
    return numba.njit(function, **_INSIDE)


def _put(digest: Any, value: Any, seen: set[int]) -> None:
    """Feed everything that machine code may depend on into a digest: code, constants, and the functions it calls."""
    function = getattr(value, "py_func", value)
    if isinstance(value, types.CodeType):
        digest.update(value.co_code + repr(value.co_names).encode())
        for constant in value.co_consts:
            _put(digest, constant, seen)
    elif isinstance(function, types.FunctionType):
        digest.update(f"{function.__module__}.{function.__qualname__}".encode())
        if id(function) in seen or function.__module__.split(".")[0] in ("numba", "numpy"):
            return
        seen.add(id(function))
        _put(digest, function.__code__, seen)
        used = inspect.getclosurevars(function)
        for name, held in sorted({**used.globals, **used.nonlocals}.items()):
            digest.update(name.encode())
            _put(digest, held, seen)
    elif isinstance(value, np.ndarray):
        digest.update(repr((value.dtype, value.shape)).encode() + value.tobytes())
    elif isinstance(value, types.ModuleType):
        digest.update(value.__name__.encode())
    elif isinstance(value, tuple):
        digest.update(f"{type(value).__qualname__} of {len(value)}".encode())
        for part in value:
            _put(digest, part, seen)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):  # its repr would hold addresses of functions
        digest.update(type(value).__qualname__.encode())
        for field in dataclasses.fields(value):
            _put(digest, getattr(value, field.name), seen)
    elif isinstance(value, frozenset):  # whose order changes from process to process
        digest.update(repr(sorted(map(repr, value))).encode())
    else:
        digest.update(repr(value).encode())


@functools.lru_cache(maxsize=256)
def specialise(loop: Callable[..., Any], **bindings: Any) -> Any:
    """Compile `loop` with the given functions instead of the globals of the same names.

    This is how one learning loop serves every compiled world at full speed: the world's functions are bound before
    compiling, so they are inlined, and the result is cached under a name that changes when they do. In one process the
    machine code is loaded once, however many agents there are.
    """
    copy = types.FunctionType(
        loop.__code__, {**loop.__globals__, **bindings}, loop.__name__, loop.__defaults__, loop.__closure__
    )
    copy.__qualname__, copy.__module__ = loop.__qualname__, loop.__module__
    if any(getattr(bound, "__module__", "") == "__main__" for bound in bindings.values()):
        return _njit(copy, None)  # numba does not find again what belongs to a script
    digest, seen = hashlib.sha256(), set[int]()
    for bound in bindings.values():
        _put(digest, bound, seen)
    return _njit(copy, _folder(digest.hexdigest()[:16]))


def cached(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls directly, and keep its machine code."""
    return _njit(function, _folder())


@contextmanager
def first_use(dispatcher: Any) -> Iterator[None]:
    """Around the first call of a function: say so where it has to be compiled, and let four sums share a register."""
    if not _is_cached(dispatcher):
        kept = "kept for the next time" if _cache_path(dispatcher) else _NOT_KEPT
        print(f"compiling for this machine (about 10 s, {kept}) ...", file=sys.stderr, flush=True)
    config: Any = numba.config
    before, config.SLP_VECTORIZE = config.SLP_VECTORIZE, 1
    try:
        yield
    finally:
        config.SLP_VECTORIZE = before


def entry(dispatcher: Any, *arguments: Any) -> Callable[..., Any]:
    """The machine code for arguments of these types: a call without the search for it, which takes as long again.

    Only for callers whose arguments never change their types: nobody looks at them again.
    """
    types_of = tuple(numba.typeof(argument) for argument in arguments)
    with first_use(dispatcher):
        dispatcher.compile(types_of)  # at once, where it has been done before
    found: Callable[..., Any] = dispatcher.get_overload(types_of)
    return found


def _cache_path(dispatcher: Any) -> str | None:
    return getattr(dispatcher._cache, "cache_path", None)


def _is_cached(dispatcher: Any) -> bool:
    """Whether machine code for this function is ready, in memory or on disk."""
    if dispatcher.signatures:
        return True
    path = _cache_path(dispatcher)
    if path is None:
        return False
    name = dispatcher.py_func.__qualname__.split(".")[-1]
    return any(Path(path).glob(f"*{name}-*.nbi"))
