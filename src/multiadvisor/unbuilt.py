"""Functions without machine code of their own, for numba: those that are only ever written into other compiled code.

Numba optimises each function twice and makes machine code of it, which nobody runs where the function is inlined into
a loop that is compiled as a whole. Without that a loop takes about a fifth less time to compile, and stays the same.
"""

from __future__ import annotations

from typing import Any

import numba

KNOWN = ((0, 68),)  # versions of numba whose inner parts these are; with others everything is compiled as usual


def unbuilt() -> dict[str, Any]:
    """Options of `numba.njit` for functions that only compiled code calls."""
    if tuple(numba.version_info[:2]) not in KNOWN:
        return {}
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import CompilerBase, DefaultPassBuilder
    from numba.core.compiler_machinery import PassManager, register_pass
    from numba.core.typed_passes import NativeLowering

    class Library(JITCodeLibrary):
        """Code to be linked into other code, and never run by itself."""

        def _optimize_final_module(self) -> None:
            """Once: numba's other look at it is for counted references, and there are none."""
            passes, builder = self._codegen._module_pass_manager()
            passes.run(self._final_module, builder)

        def _finalize_final_module(self) -> None:
            self._finalized = True

    @register_pass(mutates_CFG=True, analysis_only=False)
    class Lowering(NativeLowering):
        _name = "lowering_without_machine_code"

        def run_pass(self, state: Any) -> bool:
            state.library = Library(state.targetctx.codegen(), state.func_id.func_qualname)
            state.flags.no_compile = True
            super().run_pass(state)
            # numba tells functions apart by what Python would call, and takes any builtin: this one is like no other
            known_as: Any = [].append
            state.targetctx.insert_user_function(known_as, state.cr.fndesc, [state.library])
            state.cr = state.cr._replace(cfunc=known_as)
            return True

    class Compiler(CompilerBase):
        def define_pipelines(self) -> list[Any]:
            usual, own = DefaultPassBuilder.define_nopython_pipeline(self.state), PassManager("without machine code")
            for step, told in usual.passes:
                own.add_pass(Lowering if step is NativeLowering else step, told)
            own.finalize()
            return [own]

    return {"pipeline_class": Compiler}
