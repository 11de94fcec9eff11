# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mutants of the passes to stage `atoms`: layout folding, multiplications, copies and maps."""

from tests.mutants.mutant import Mutant, of

_FOLD = of("fold-layouts", "passes/fold_layouts.py", "passes/test_fold_layouts", "passes/test_filecheck")
_SLICE = of("fold-layouts", "passes/writing/coordinate_folding.py", "passes/test_fold_layouts", "passes/test_filecheck")
_COORD = of("fold-layouts", "passes/writing/coordinate_folding.py", "passes/test_fold_layouts", "passes/test_filecheck")
_GEMM = of("expand-gemms", "passes/expand_gemms.py", "passes/test_gemms", "passes/test_wgmma")
_COPY = of("expand-copies", "passes/expand_copies.py", "passes/test_expand_copies", "passes/test_filecheck")
_WIDTH = of("expand-copies", "passes/analysis/vector_width.py", "passes/test_expand_copies", "passes/test_filecheck")
_TENSOR = of("expand-copies", "passes/writing/tma.py", "passes/test_expand_copies", "passes/test_filecheck")
_MAPS = of("expand-maps", "passes/expand_maps.py", "passes/test_expand_maps")

TO_ATOMS: tuple[Mutant, ...] = (
    _FOLD.mutant(
        "fold: constant part of a slice lost",
        "distance = add_index(emitter, *slice_index(emitter, coord, sliced))",
        "distance = add_index(emitter, slice_index(emitter, coord, sliced)[0], None)",
        "tests/mutants/programs/slices.cute",
    ),
    _FOLD.mutant(
        "fold: predicates of a copy lost",
        "None, inner.copy_atom, inner.pred, inner.mbarrier",
        "None, inner.copy_atom, None, inner.mbarrier",
        "examples/ragged_copy.cute",
    ),
    _SLICE.mutant(
        "fold: static coordinates first",
        "values = [c.value for c in coords if isinstance(c, SsaInt)]",
        "values = [c.value for c in coords if isinstance(c, SsaInt)][::-1]",
        "tests/mutants/programs/slices.cute",
    ),
    _COORD.mutant("fold: bound is inside", 'bound, "slt"))', 'bound, "sle"))', "examples/ragged_copy.cute"),
    _COORD.mutant(
        "fold: one bound is enough",
        "inside is None else emitter.value(arith.AndIOp(inside, below))",
        "inside is None else emitter.value(arith.OrIOp(inside, below))",
        "examples/ragged_copy.cute",
    ),
    _COORD.mutant(
        "fold: start of a coordinate lost",
        "return add_index(emitter, add_index(emitter, value, distance), constant)",
        "return added(emitter, distance, constant)",
        "examples/ragged_copy.cute",
    ),
    _GEMM.mutant(
        "gemms: last K lost",
        "self._products(emitter, _loop(emitter, k), self.c)",
        "self._products(emitter, _loop(emitter, k - 1), self.c)",
        "examples/hgemm.cute",
    ),
    _GEMM.mutant(
        "gemms: later products added to C",
        "self._products(emitter, emitter.value(arith.AddiOp(again, one)), self.d)",
        "self._products(emitter, emitter.value(arith.AddiOp(again, one)), self.c)",
        "tests/mutants/programs/product.cute",
    ),
    _GEMM.mutant(
        "gemms: first K twice",
        "emitter.value(arith.AddiOp(again, one))",
        "again",
        "tests/mutants/programs/product.cute",
    ),
    _GEMM.mutant(
        "gemms: way back begins one too late",
        "one, last = emitter.index(1), emitter.index(extent - 1)",
        "one, last = emitter.index(1), emitter.index(extent)",
        "examples/hgemm.cute",
    ),
    _GEMM.mutant(
        "gemms: rows of a pair overlap",
        "arith.MuliOp(outer, emitter.index(2))",
        "arith.MuliOp(outer, emitter.index(1))",
        "tests/mutants/programs/product.cute",
    ),
    _GEMM.mutant(
        "gemms: only the first K accumulates",
        'emitter.index(0), "ne")',
        'emitter.index(0), "eq")',
        "examples/gemm_fp8_scaled.cute --target sm_90a -D M=64 -D N=64",
    ),
    _COPY.mutant(
        "copies: zero-fill counts one too few",
        "range(1, total):",
        "range(1, total - 1):",
        "tests/mutants/programs/copies.cute",
    ),
    _WIDTH.mutant(
        "copies: alignment of steps ignored",
        ", steps(typed(part[1])) * tensor.element_bits)",
        ", 0)",
        "tests/mutants/programs/copies.cute",
    ),
    _WIDTH.mutant(
        "copies: one predicate for several",
        "if not is_constant(flags[0]):",
        "if not is_constant(flags[1]):",
        "tests/mutants/programs/copies.cute",
    ),
    _COPY.mutant(
        "copies: registers moved back",
        "_expand(move_registers(emitter, dst, parts[1])",
        "_expand(move_registers(emitter, parts[1], dst)",
        "tests/mutants/programs/copies.cute",
    ),
    _TENSOR.mutant(
        "copies: tile begins at the origin",
        "moved = add_index(emitter, add_index(emitter, start, distance), constant)",
        "moved = add_index(emitter, distance, constant)",
        "examples/tma_copy.cute",
    ),
    _MAPS.mutant(
        "maps: last element lost",
        "loops = [emitter.loop(extent) if extent > 1 else None",
        "loops = [emitter.loop(extent - 1) if extent > 1 else None",
        "examples/softmax.cute",
    ),
    _MAPS.mutant(
        "maps: operands one place on",
        "zip(block.args, (*op.srcs, op.dst), strict=False)",
        "zip(block.args, (*op.srcs[1:], op.dst, op.dst), strict=False)",
        "examples/softmax.cute",
    ),
)
