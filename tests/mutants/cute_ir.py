# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mutants of the passes of the public CuTe IR. Some run before the simulator can, or on the way to the `llvm` dialect,
which it does not run: `tilefold bisect` sees the others.
"""

from tests.mutants.mutant import Mutant, Place, of


def _of(pass_name: str, file: str, test: str = "") -> Place:
    """A file of a pass, with the test file that is named after the pass."""
    return of(pass_name, f"passes/{file}.py", f"passes/{test or 'test_' + pass_name.replace('-', '_')}")


_FOLDING = _of("base-prepare", "writing/constant_folding")
_INLINE = _of("inline-calls", "cute_ir/inline_calls", "test_gpu_to_ptx")
_EXPAND = _of("cute-expand-ops", "cute_ir/cute_expand_ops", "test_cute_expand")
_STATIC = _of("cute-fold-static", "cute_ir/cute_fold_static", "test_cute_expand")
_BASE = _of("cute-to-base", "cute_ir/cute_to_base")
_GPU = _of("gpu-to-ptx", "cute_ir/gpu_to_ptx")
_LLVM = _of("one-shot-convert-to-llvm", "cute_ir/writing/llvm_arith")
_BLOCKS = _of("one-shot-convert-to-llvm", "cute_ir/one_shot_convert_to_llvm")
_TARGET = _of("attach-nvvm-target", "cute_ir/attach_nvvm_target", "test_gpu_binary")

_CALLED = "tests/mutants/programs/called.cute"
_PRINTED = "tests/mutants/programs/printed.cute -p cute-fold-static,cute-expand-ops,cute-to-base,gpu-to-ptx"

CUTE_IR: tuple[Mutant, ...] = (
    _FOLDING.mutant(
        "prepare: the other value is chosen",
        "(left if chosen else right)",
        "(right if chosen else left)",
        "tests/mutants/programs/emitted.cute -p base-prepare",
    ),
    _FOLDING.mutant(
        "prepare: part of another field",
        "if where == position:",
        "if where != position:",
        f"{_CALLED} -p base-prepare",
    ),
    _INLINE.mutant(
        "inline: results in reverse",
        "zip(call.results, end.arguments, strict=True)",
        "zip(call.results, reversed(end.arguments), strict=True)",
        f"{_CALLED} -p inline-calls",
    ),
    _EXPAND.mutant("expand: less is less or equal", 'else "slt"', 'else "sle"', f"{_CALLED} -p cute-expand-ops"),
    _STATIC.mutant(
        "fold-static: the other truth", "from_bool(known)", "from_bool(not known)", f"{_CALLED} -p cute-fold-static"
    ),
    _BASE.mutant(
        "base: composed layouts print their parts in order",
        "for fields in reversed(groups) for field",
        "for fields in groups for field",
        _PRINTED,
    ),
    _BASE.mutant("base: 64 bits printed as 32", '"%lld" if match[1] else "%d"', '"%d" if match[1] else "%d"', _PRINTED),
    _GPU.mutant(
        "gpu: size of the block in reverse",
        "x, y, z = (*map(int, sizes.pop()), 1, 1, 1)[:3]",
        "z, y, x = (*map(int, sizes.pop()), 1, 1, 1)[:3]",
    ),
    _GPU.mutant("gpu: another barrier", "BarSyncOp(0)", "BarSyncOp(1)"),
    _LLVM.mutant("llvm: arithmetic shift is logical", "arith.ShRSIOp: llvm.AShrOp", "arith.ShRSIOp: llvm.LShrOp"),
    _LLVM.mutant("llvm: signed least is unsigned", 'arith.MinSIOp: "slt"', 'arith.MinSIOp: "ult"'),
    _BLOCKS.mutant(
        "llvm: loop goes on when it ends",
        "(decision.condition, after, decision.args, rest, decision.args)",
        "(decision.condition, rest, decision.args, after, decision.args)",
    ),
    _TARGET.mutant("target: only the first is attached", "and target not in module.targets", "and not module.targets"),
)
