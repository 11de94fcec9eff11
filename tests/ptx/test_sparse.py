# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mma.sp in PTX: against NumPy on whole matrices, whose fragments and metadata follow the text of the PTX ISA."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.errors import Code, TilefoldError

import tilefold
from tests.ptx.texts import kernel

INTEGERS = NDArray[np.int64]
TYPES: Mapping[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2, "s8": np.int8, "u8": np.uint8, "s4": np.int8, "u4": np.uint8, "f32": np.float32,
    "s32": np.int32,
}  # fmt: skip
BITS = {"tf32": 32, "f32": 32, "s32": 32, "f16": 16, "bf16": 16, "s4": 4, "u4": 4}


@dataclass
class Form:
    """An instruction: K, the types of D, A and B, and how many alternatives there are for the threads of metadata."""

    k: int
    d: str
    a: str
    b: str
    selectors: int
    word: str = "sp"
    saturates: bool = False

    @property
    def bits(self) -> int:
        return BITS.get(self.a, 8)

    @property
    def chunk(self) -> int:
        return {32: 2, 4: 8}.get(self.bits, 4)

    @property
    def name(self) -> str:
        types = f"{'satfinite.' if self.saturates else ''}{self.d}.{self.a}.{self.b}.{self.d}"
        return f"mma.{self.word}.sync.aligned.m16n8k{self.k}.row.col.{types}"


def packed(values: NDArray[np.generic], bits: int) -> NDArray[np.uint32]:
    """Registers (lanes, registers) of values (lanes, values), the first in the lowest bits."""
    if bits == 4:
        codes = values.astype(np.int64) & 15
        halves = (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)
        return np.ascontiguousarray(halves).view(np.uint32)
    return np.ascontiguousarray(values).view(np.uint32)


def fragments(form: Form, stored: NDArray[np.generic], b: NDArray[np.generic]) -> tuple[NDArray[np.uint32], ...]:
    """Registers of A, of which (16, K/2) elements are stored, and of B (K, 8)."""
    each = 32 // form.bits
    lanes = np.arange(32)[:, None]
    group, thread = lanes >> 2, lanes & 3
    i = np.arange(4 * each if form.k * form.bits == 512 else 2 * each)
    row = group + 8 * (i // each % 2)
    column = thread * each + 4 * each * (i // each // 2) + i % each  # of the stored elements: firstcol is twice this
    j = np.arange(form.k // 4)
    k = thread * each + j // each * 4 * each + j % each
    return packed(stored[row, column], form.bits), packed(b[k, group], form.bits)


def metadata(form: Form, codes: INTEGERS, select: int) -> NDArray[np.uint32]:
    """Registers of 4 bits (16, chunks) for each chunk; other lanes have garbage."""
    words = np.full(32, 0xDEADBEEF, np.int64)
    chunks = codes.shape[1]
    for lane in range(32):
        group, thread = lane >> 2, lane & 3
        if form.bits >= 16:  # four chunks of row g, then four of row g + 8
            threads = chunks // 4
            part = thread - select * threads
            if not 0 <= part < threads:
                continue
            given = [*codes[group, 4 * part : 4 * part + 4], *codes[group + 8, 4 * part : 4 * part + 4]]
        else:  # eight chunks of one row
            part = thread - (2 * select if chunks == 8 else 0)
            if not 0 <= part < (2 if chunks == 8 else 4):
                continue
            first = 8 * (part // 2)
            given = codes[group + 8 * (part % 2), first : first + 8].tolist()
        words[lane] = sum(int(code) << 4 * at for at, code in enumerate(given))
    return words.astype(np.uint32)


def chosen(form: Form, codes: INTEGERS) -> INTEGERS:
    """The columns (16, K/2) of the elements that are there."""
    rows, chunks = codes.shape
    if form.chunk == 2:
        within = np.where(codes == 0b1110, 1, 0)[..., None]
    else:
        within = np.stack([codes & 3, codes >> 2], axis=-1)
        if form.chunk == 8:
            within = (2 * within[..., None] + np.arange(2)).reshape(rows, chunks, 4)
    first: INTEGERS = form.chunk * np.arange(int(chunks))[:, None]
    return (within + first).reshape(rows, -1)


def program(form: Form, registers: tuple[int, int, int], select: int, target: str = "sm_90a") -> str:
    a, b, d = registers
    lines = ["mov.u32 %r0, %tid.x;"]
    for number, (name, count, base) in enumerate((("A", a, 4), ("B", b, 8), ("C", d, 12), ("E", 1, 16))):
        lines += [f"ld.param.u64 %d1, [{name}]; cvta.to.global.u64 %d2, %d1; mul.wide.u32 %d3, %r0, {4 * count};"]
        lines += [f"add.s64 %d{4 + number}, %d2, %d3;"]
        lines += [f"ld.global.u32 %r{base + i}, [%d{4 + number}+{4 * i}];" for i in range(count)]
    names = [", ".join(f"%r{base + i}" for i in range(count)) for base, count in ((20, d), (4, a), (8, b), (12, d))]
    if form.d == "f32":
        lines += [f"mov.b32 %f{i}, %r{12 + i};" for i in range(4)]
        names[0], names[3] = "%f4, %f5, %f6, %f7", "%f0, %f1, %f2, %f3"
    lines.append(f"{form.name} {{{names[0]}}}, {{{names[1]}}}, {{{names[2]}}}, {{{names[3]}}}, %r16, {select:#x};")
    if form.d == "f32":
        lines += [f"mov.b32 %r{20 + i}, %f{4 + i};" for i in range(4)]
    lines += [f"st.global.u32 [%d6+{4 * i}], %r{20 + i};" for i in range(d)]
    parameters = ", ".join(f".param .u64 {name}" for name in "ABCE")
    text = kernel("\n".join(lines) + "\nret;", parameters)
    return text.replace(".version 8.0", ".version 8.5").replace("sm_80", target)


CODES = {2: (0b0100, 0b1110), 4: (4, 8, 9, 12, 13, 14), 8: (4, 8, 9, 12, 13, 14)}
FORMS = [
    *(Form(k, d, "f16", "f16", 64 // k, word) for k, d, word in
      ((16, "f32", "sp"), (16, "f16", "sp::ordered_metadata"), (32, "f32", "sp::ordered_metadata"), (32, "f16", "sp"))),
    Form(16, "f32", "bf16", "bf16", 4), Form(32, "f32", "bf16", "bf16", 2),
    Form(8, "f32", "tf32", "tf32", 4), Form(16, "f32", "tf32", "tf32", 2),
    Form(32, "s32", "s8", "u8", 2), Form(64, "s32", "u8", "s8", 1, saturates=True),
    Form(64, "s32", "s4", "u4", 2), Form(128, "s32", "u4", "u4", 1), Form(64, "f32", "e4m3", "e5m2", 1),
]  # fmt: skip


def make(form: Form, seed: int) -> tuple[NDArray[np.generic], INTEGERS, NDArray[np.generic], NDArray[np.generic]]:
    """The stored elements of A, the descriptions of its chunks, B and C: small whole numbers."""
    rng = np.random.default_rng(seed)
    low = 0 if form.a[0] == "u" else -4
    stored = rng.integers(low, 5, (16, form.k // 2)).astype(TYPES[form.a])
    b = rng.integers(0 if form.b[0] == "u" else -4, 5, (form.k, 8)).astype(TYPES[form.b])
    codes = rng.choice(CODES[form.chunk], (16, form.k // form.chunk))
    if form.word == "sp" and form.chunk != 2:
        codes = np.where(rng.integers(0, 2, codes.shape) > 0, codes, (codes & 3) << 2 | codes >> 2)
    return stored, codes, b, rng.integers(-9, 9, (16, 8)).astype(TYPES[form.d])


def accumulator(c: NDArray[np.generic]) -> NDArray[np.generic]:
    """The elements (lanes, 4) of C or D."""
    lanes, i = np.arange(32)[:, None], np.arange(4)
    return c[(lanes >> 2) + 8 * (i // 2), (lanes & 3) * 2 + i % 2]


def launch(form: Form, given: tuple[NDArray[np.uint32], ...], select: int, d: NDArray[np.generic]) -> None:
    a, b, e = given
    text = program(form, (a.shape[1], b.shape[1], d.view(np.uint32).shape[1]), select)
    tilefold.load_ptx(text)["k"](a, b, d.view(np.uint32), e).launch(1, 32)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_the_product_is_that_of_the_whole_matrix(form: Form) -> None:
    stored, codes, b, c = make(form, form.k)
    whole = np.zeros((16, form.k))
    np.put_along_axis(whole, chosen(form, codes), stored.astype(float), axis=1)
    expected = accumulator(whole @ b.astype(float) + c.astype(float))
    for select in {0, form.selectors - 1}:
        d = np.ascontiguousarray(accumulator(c))
        launch(form, (*fragments(form, stored, b), metadata(form, codes, select)), select, d)
        assert np.array_equal(d.astype(float), expected)


@pytest.mark.parametrize(("form", "code"), [
    (FORMS[0], 0b0101), (FORMS[2], 0b0001), (FORMS[6], 0b1001), (FORMS[10], 0b1111),
])  # fmt: skip
def test_metadata_name_different_elements(form: Form, code: int) -> None:
    stored, codes, b, c = make(form, 1)
    codes[9, 1] = code
    with pytest.raises(TilefoldError) as caught:
        launch(form, (*fragments(form, stored, b), metadata(form, codes, 0)), 0, np.ascontiguousarray(accumulator(c)))
    assert caught.value.code is Code.SIM_METADATA
    assert "row 9, columns" in caught.value.message


def test_the_selector_chooses_the_threads() -> None:
    """Metadata of other threads than the selected ones."""
    form = FORMS[2]
    stored, codes, b, c = make(form, 1)
    e = metadata(form, codes, 1)
    e[e == 0xDEADBEEF] = 0
    with pytest.raises(TilefoldError, match="names one twice"):
        launch(form, (*fragments(form, stored, b), e), 0, np.ascontiguousarray(accumulator(c)))
    with pytest.raises(TilefoldError, match="the sparsity selector is 2"):
        launch(form, (*fragments(form, stored, b), e), 2, np.ascontiguousarray(accumulator(c)))


def test_other_elements_of_b_do_not_take_part() -> None:
    form = FORMS[2]
    stored, codes, b, c = make(form, 1)
    codes[:] = 0b0100
    b[2::4] = np.inf
    b[3::4] = np.nan
    d = np.ascontiguousarray(accumulator(c))
    launch(form, (*fragments(form, stored, b), metadata(form, codes, 0)), 0, d)
    assert np.isfinite(d).all()
