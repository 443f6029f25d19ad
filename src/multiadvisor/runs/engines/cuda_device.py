"""A CUDA GPU, through numba-cuda: the only module with CUDA.

A lane is a thread, or a group of threads of one warp. The functions are those that the processor compiles, compiled
once more; products and sums are not contracted into one operation, so that they round as they do on the processor.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numba import float64, from_dtype, int16, int32

from multiadvisor.core.optional_dependencies import lacking
from multiadvisor.errors import BadInput, in_one_line
from multiadvisor.learners.tabular.lane_batch import Device, Launch
from multiadvisor.learners.tabular.thread_groups import WARP, GroupMemory


def find_device() -> Device:
    """The GPU of this machine, or an error that says why there is none."""
    if find_spec("numba_cuda") is None:
        raise lacking("gpu")
    try:
        cuda = import_module("numba.cuda")
        found = cuda.is_available()
    except Exception as error:
        raise BadInput(f"CUDA cannot be used: {in_one_line(error)}") from None
    if not found:
        raise BadInput("no CUDA GPU is found on this machine")
    return CudaDevice(cuda)


class CudaDevice:
    """The GPU that is chosen when nothing else is said."""

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        self.registers: int | None = None  # of a thread of a group, at most
        self._kernels: dict[Any, Any] = {}

    def name(self) -> str:
        """What it is called."""
        name = self._cuda.get_current_device().name
        return name.decode() if isinstance(name, bytes) else str(name)

    def free(self) -> int:
        """Bytes of memory."""
        return int(self._cuda.current_context().get_memory_info().free)

    def empty(self, shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
        """An array whose values nobody knows."""
        return self._cuda.device_array(shape, dtype)

    def put(self, array: np.ndarray) -> Any:
        """A copy there."""
        return self._cuda.to_device(np.ascontiguousarray(array))

    def get(self, array: Any) -> np.ndarray:
        """A copy here."""
        found: np.ndarray = array.copy_to_host()
        return found

    def compile(self, function: Callable[..., None], loop: Any) -> Launch:
        """A kernel with a thread for each lane; it is compiled at its first launch."""
        return self._launch((function, loop), lambda: kernel_of(self._cuda, function, loop), 1)

    def compile_group(self, loop: Any, memory: GroupMemory, threads: int) -> Launch:
        """A kernel with so many threads for each lane."""

        def make() -> Any:
            return group_kernel_of(self._cuda, loop, memory, threads, self.registers)

        shapes = tuple((array.shape, array.dtype) for array in memory)
        return self._launch((loop, shapes, threads, self.registers), make, threads)

    def _launch(self, key: Any, make: Callable[[], Any], threads: int) -> Launch:
        """By a kernel that is made once."""
        kernel = self._kernels[key] if key in self._kernels else self._kernels.setdefault(key, make())

        def launch(constants: Any, lanes: Any, play: Any, steps: int, count: int) -> None:
            with uncontracted():
                kernel[-(-count * threads // WARP), WARP](constants, lanes, play, steps, count)

        return launch


def kernel_of(cuda: Any, function: Callable[..., None], loop: Any) -> Any:
    """A function of `lanes` as a kernel, with a learner's loop."""
    work = cuda.jit(_with(function, {"PLAY": _on_device(cuda, loop)}), device=True)

    def kernel(constants, lanes, play, steps, count):  # type: ignore[no-untyped-def]
        lane = cuda.grid(1)
        if lane < count:
            work(constants, lanes, play, steps, lane, lane + 1)

    return cuda.jit(kernel, lto=False)


def group_kernel_of(cuda: Any, loop: Any, memory: GroupMemory, threads: int, registers: int | None = None) -> Any:
    """A `group_loop` as a kernel; a block is one warp, whose runs have their rooms in its shared memory."""
    runs, everybody, size = WARP // threads, 0xFFFFFFFF, 16
    x_shape, slots_shape, rows_shape, advice_shape, preferences_shape, one_shape = (
        (runs, *array.shape)
        for array in (memory.x, memory.reward, memory.rows, memory.advice, memory.preferences, memory.status)
    )  # fmt: skip
    x_type, advice_type, progress_type, status_type = (
        from_dtype(array.dtype) for array in (memory.x, memory.advice, memory.progress, memory.status)
    )

    @cuda.jit(device=True)
    def sync():  # type: ignore[no-untyped-def]
        cuda.syncwarp(everybody)

    @cuda.jit(device=True)
    def anybody(flag):  # type: ignore[no-untyped-def]
        return cuda.any_sync(everybody, flag)

    parts, rest = divmod(memory.advice[0].nbytes, size)
    held = {} if rest else {"copy_row": _row_copier(parts)}
    play_group = _on_device(cuda, loop, sync=sync, anybody=anybody, **held)

    def kernel(constants, lanes, play, steps, count):  # type: ignore[no-untyped-def]
        x, advisors = cuda.shared.array(x_shape, x_type), cuda.shared.array(slots_shape, int16)
        ended, rows = cuda.shared.array(slots_shape, int16), cuda.shared.array(rows_shape, int32)
        reward, weight = cuda.shared.array(slots_shape, float64), cuda.shared.array(slots_shape, float64)
        advice = cuda.shared.array(advice_shape, advice_type, size)
        preferences = cuda.shared.array(preferences_shape, float64)
        progress, status = cuda.shared.array(one_shape, progress_type), cuda.shared.array(one_shape, status_type)
        group, thread = cuda.threadIdx.x // threads, cuda.threadIdx.x % threads
        run = cuda.blockIdx.x * runs + group
        own = GroupMemory(
            x[group], advisors[group], rows[group], ended[group], reward[group], weight[group], advice[group],
            preferences[group], progress[group], status[group],
        )  # fmt: skip
        play_group(constants, lanes, play, steps, min(run, count - 1), run < count, own, thread, thread + 1, 1)

    return cuda.jit(kernel, lto=False, max_registers=registers)


def _row_copier(parts: int) -> Any:
    """`copy_row` for rows of so many times 16 bytes."""
    extending, cgutils = import_module("numba.cuda.extending"), import_module("numba.cuda.cgutils")
    numba_types, ir = import_module("numba.cuda.types"), import_module("llvmlite.ir")

    @extending.intrinsic
    def copy_row(typing, own, table, row, advice, i):  # type: ignore[no-untyped-def]
        def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            vector, places = ir.VectorType(ir.IntType(32), 4).as_pointer(), []
            for array, index in ((1, 2), (3, 4)):
                kind = signature.args[array]
                found = context.make_array(kind)(context, builder, arguments[array])
                indices = [arguments[index], context.get_constant(numba_types.intp, 0)]
                place = cgutils.get_item_pointer(context, builder, kind, found, indices)
                places.append(builder.bitcast(place, vector))
            for part in range(parts):
                at = [ir.Constant(ir.IntType(32), part)]
                value = builder.load(builder.gep(places[0], at), align=16)
                builder.store(value, builder.gep(places[1], at), align=16)
            return context.get_dummy_value()

        return numba_types.void(own, table, row, advice, i), emit

    return copy_row


def _on_device(cuda: Any, loop: Any, **held: Any) -> Any:
    """A compiled loop for the GPU. It finds the functions that the loop calls by name, but not those in tuples."""
    known = loop.py_func.__globals__
    tuples = {name: _there(cuda, known[name]) for name in ("RULE", "OWN") if name in known}
    return cuda.jit(_with(loop.py_func, {**tuples, **held}), device=True)


def _there(cuda: Any, value: Any) -> Any:
    """The same with its functions for the GPU."""
    if isinstance(value, tuple):
        return type(value)(*(_there(cuda, part) for part in value))
    return cuda.jit(value.py_func, device=True) if hasattr(value, "py_func") else value


def _with(function: Any, held: dict[str, Any]) -> types.FunctionType:
    """The function with other globals of these names."""
    return types.FunctionType(function.__code__, {**function.__globals__, **held}, function.__name__)


@contextmanager
def uncontracted() -> Iterator[None]:
    """What is compiled meanwhile keeps products and sums apart: numba-cuda has no option for that, its compiler has."""
    nvvm: Any = import_module("numba.cuda.cudadrv.nvvm")
    before = nvvm.compile_ir
    nvvm.compile_ir = lambda code, **options: before(code, **{**options, "fma": 0})
    try:
        yield
    finally:
        nvvm.compile_ir = before
