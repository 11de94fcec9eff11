# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mutants of `lower-tensors`: addresses, swizzles, and the registers of instructions."""

from tests.mutants.mutant import Mutant, of

_TESTS = ("passes/test_lower_tensors", "passes/test_filecheck", "passes/test_tensor_maps")
_LOWER = of("lower-tensors", "passes/lower_tensors.py", *_TESTS)
_ADDRESS = of("lower-tensors", "passes/writing/addresses.py", *_TESTS)
_SWIZZLE = of("lower-tensors", "layout/algebra/swizzled_sum.py", *_TESTS)
_MMA = of("lower-tensors", "passes/writing/mma_instructions.py", *_TESTS)

TO_INDEX: tuple[Mutant, ...] = (
    _LOWER.mutant(
        "lower: offset of an alias lost",
        "emitter.moved(self._address(op.source).pointer, op.offset.value.data)",
        "self._address(op.source).pointer",
        "tests/mutants/programs/registers.cute",
    ),
    _SWIZZLE.mutant(
        "lower: half a period of the swizzle",
        "(swizzle.y_mask | swizzle.z_mask).bit_length()",
        "(swizzle.y_mask | swizzle.z_mask).bit_length() - 1",
        "examples/transpose.cute",
    ),
    _ADDRESS.mutant("lower: 32 bits beyond 2 GiB", "* max(bits, 8) < 2**34", "* max(bits, 8) < 2**38"),
    _LOWER.mutant(
        "lower: integers of a layout in reverse",
        "self._address(op.tensor).scalars, strict=True):",
        "self._address(op.tensor).scalars[::-1], strict=True):",
        "examples/ragged_copy.cute",
    ),
    _LOWER.mutant(
        "lower: coordinates of a TMA copy in reverse",
        "self.addresses.converted(coord, 32, must_fit=True) for coord in op.coords]",
        "self.addresses.converted(coord, 32, must_fit=True) for coord in reversed(op.coords)]",
        "examples/tma_copy.cute",
    ),
    _ADDRESS.mutant(
        "lower: coordinates outside are not noticed",
        "return () if all(self._inside(*pair) for pair in pairs) else pairs",
        "return ()",
        "tests/mutants/programs/outside.cute",
    ),
    _MMA.mutant(
        "lower: registers of A swapped",
        "MmaSyncOp(atom.name, a, b, c)",
        "MmaSyncOp(atom.name, [a[0], *reversed(a[1:-1]), *a[1:][-1:]], b, c)",
        "examples/hgemm.cute",
    ),
    _MMA.mutant(
        "lower: unsigned numbers sign-extended",
        'extend = arith.ExtUIOp if name.startswith("u") else arith.ExtSIOp',
        "extend = arith.ExtSIOp",
        "tests/mutants/programs/registers.cute",
    ),
)
