# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mutants of the passes from stage `index` to stage `instr`, and of `cse`."""

from tests.mutants.mutant import Mutant, of

_COMBINE = of("combine-remainders", "passes/analysis/quotients.py", "passes/test_combine_remainders")
_UNROLL = of("unroll-loops", "passes/unroll_loops.py", "passes/test_filecheck")
_CSE = of("cse", "passes/cse.py", "passes/test_cse")
_MERGE = of("merge-accesses", "passes/merge_accesses.py", "passes/test_merge_accesses")
_ATOMS = of("expand-atoms", "passes/expand_atoms.py", "passes/test_filecheck")
_FLOATS = of("expand-conversions", "passes/writing/float8_conversions.py", "passes/test_expand_conversions")
_SMEM = of("allocate-smem", "passes/allocate_smem.py", "passes/test_filecheck")
_INDEX = of("convert-index", "passes/convert_index.py", "passes/test_carried_ranges", "passes/test_filecheck")
_RANGES = of("convert-index", "passes/analysis/range_facts.py", "passes/test_carried_ranges")
_REDUCE = of("strength-reduce", "passes/strength_reduce.py", "passes/test_filecheck")

_NARROW = "tests/mutants/programs/narrow.cute"
_INTEGERS = "tests/mutants/programs/integers.cute"
_WORDS = "tests/mutants/programs/words.cute --target sm_90a"

TO_INSTR: tuple[Mutant, ...] = (
    _COMBINE.mutant(
        "combine: divisor of the outer quotient", "mod = following.div // digit.div", "mod = following.div", _INTEGERS
    ),
    _COMBINE.mutant(
        "combine: divisors not multiplied", "(div=digit.div * digit.mod),)] =", "(div=digit.mod),)] =", _INTEGERS
    ),
    _COMBINE.mutant(
        "combine: mask is the divisor",
        "_Division(owner.lhs, mask + 1, None, True)",
        "_Division(owner.lhs, mask, None, True)",
        _INTEGERS,
    ),
    _UNROLL.mutant("unroll: last iteration lost", "for trip in trips:", "for trip in trips[:-1]:", _INTEGERS),
    _UNROLL.mutant(
        "unroll: values not handed on",
        "carried = [known.get(value, value) for value in op.operands]",
        "carried = list(carried)",
        _INTEGERS,
    ),
    _CSE.mutant(
        "cse: operands in any order",
        "parts = op.name, tuple(op.operands)",
        "parts = op.name, frozenset(op.operands)",
        _INTEGERS,
    ),
    _CSE.mutant(
        "cse: properties ignored",
        "types, _items(op.properties), _items(op.attributes)",
        "types, _items(op.attributes)",
        "examples/ragged_copy.cute",
    ),
    _CSE.mutant(
        "cse: reads across writes",
        "effects is None or changes_memory(effects)",
        "effects is None",
        _INTEGERS,
    ),
    _MERGE.mutant("merge: alignment not proven", "if aligned % width == 0 and all(", "if all(", _NARROW),
    _MERGE.mutant("merge: across barriers", "elif not is_side_effect_free(op):", "elif op.regions:", _WORDS),
    _MERGE.mutant(
        "merge: elements in reverse",
        "in zip(loads, extract_elements(",
        "in zip(reversed(loads), extract_elements(",
        _NARROW,
    ),
    _MERGE.mutant(
        "merge: stores to the same bytes",
        "return same and self.stored.isdisjoint(_bytes_of(access, address))",
        "return same",
        _WORDS,
    ),
    _MERGE.mutant("merge: address of the first access", "if distance == 0:", "if distance <= 0:", _NARROW),
    _ATOMS.mutant(
        "atoms: matrices not transposed",
        "LdMatrixOp(load.num, load.trans, op.src",
        "LdMatrixOp(load.num, False, op.src",
        "examples/ldmatrix.cute",
    ),
    _ATOMS.mutant(
        "atoms: half the bytes of a copy",
        "atom.val_bits // 8, i32",
        "atom.val_bits // 16, i32",
        "examples/copy_atoms.cute",
    ),
    _ATOMS.mutant(
        "atoms: matrix moved as it is", "emitter.value(MovMatrixOp(value))", "value", "examples/copy_atoms.cute"
    ),
    _FLOATS.mutant("floats: halves of a pair swapped", "CvtOp(form, [high, low])", "CvtOp(form, [low, high])", _WORDS),
    _FLOATS.mutant(
        "floats: number in the high byte", "CvtOp(form, [zero, numbers[0]])", "CvtOp(form, [numbers[0], zero])", _WORDS
    ),
    _FLOATS.mutant(
        "floats: the other half", "vector.ExtractOp(both, [0], f16)", "vector.ExtractOp(both, [1], f16)", _WORDS
    ),
    _SMEM.mutant(
        "smem: allocations overlap",
        "end = start + alloc.bytes.value.data",
        "end = start + alloc.align.value.data",
        "examples/hgemm.cute",
    ),
    _SMEM.mutant("smem: not aligned", "start = -(-end // align) * align", "start = end", _WORDS),
    _INDEX.mutant("index: zero extension", "arith.ExtSIOp if now < width", "arith.ExtUIOp if now < width", _INTEGERS),
    _INDEX.mutant(
        "index: step of a counted loop lost", "inside.value(arith.MuliOp(counter, step))", "counter", _INTEGERS
    ),
    _RANGES.mutant(
        "index: bound of a comparison", "high = min(high, other[1] - 1)", "high = min(high, other[1] - 2)", _INTEGERS
    ),
    _REDUCE.mutant(
        "reduce: mask is the divisor", "constant(constant - 1, type)", "constant(constant, type)", _INTEGERS
    ),
    _REDUCE.mutant("reduce: signed shift", "arith.ShRUIOp(value, emitter", "arith.ShRSIOp(value, emitter", _INTEGERS),
)
