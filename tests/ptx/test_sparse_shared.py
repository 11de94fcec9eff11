# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""wgmma.mma_async.sp and tcgen05.mma.sp of CUDA C++, whose A is in shared memory or in registers: against NumPy."""

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.errors import Code, TilefoldError
from tilefold.compiler.machine import nvrtc

import tilefold
from tests.ptx.test_cuda_source import needs_nvrtc
from tests.ptx.test_sparse import CODES, TYPES, Form, chosen, metadata, packed
from tilefold.cute.loaded_ptx import PtxKernel

COMMON = """
typedef unsigned u32; typedef unsigned long long u64;
__device__ u32 at(const void *p) { return (u32)__cvta_generic_to_shared(p); }
// A and B without a swizzle: matrices of 8 rows of 16 bytes, beside each other along K
__device__ void fill(unsigned char *to, const unsigned char *from, int rows, int bytes) {
  for (int i = threadIdx.x; i < rows * bytes; i += 128) {
    int r = i / bytes, k = i % bytes;
    to[r / 8 * 8 * bytes + k / 16 * 128 + r % 8 * 16 + k % 16] = from[i];
  }
}
"""

WGMMA = (
    COMMON
    + """
__device__ u64 matrix(const void *p, int bytes) {
  return (u64)(at(p) >> 4) | 8ull << 16 | (u64)(8 * bytes >> 4) << 32;
}
extern "C" __global__ void k(const unsigned char *A, const unsigned char *B, const u32 *E, const u32 *R, SUM *D) {
  __shared__ alignas(1024) unsigned char a[64 * 32], b[8 * 64];
  fill(a, A, 64, 32);
  fill(b, B, 8, 64);
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  SUM d[4] = {};
  u32 e = E[threadIdx.x], r[4];
  for (int i = 0; i < 4; ++i) r[i] = R[4 * threadIdx.x + i];
  u64 of_a = matrix(a, 32), of_b = matrix(b, 64);
  asm volatile("wgmma.fence.sync.aligned;" : REG(d[0]), REG(d[1]), REG(d[2]), REG(d[3]) :: "memory");
  for (int i = 0; i < 2; ++i)
#ifdef RS
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %9, 0; wgmma.mma_async.sp.sync.aligned.m64n8k" FORM
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, %10, " SELECT ", p" SIGNS_RS "; }"
      : REG(d[0]), REG(d[1]), REG(d[2]), REG(d[3])
      : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "l"(of_b), "r"(i), "r"(e));
#else
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0; wgmma.mma_async.sp.sync.aligned.m64n8k" FORM
                 " {%0, %1, %2, %3}, %4, %5, %7, " SELECT ", p" SIGNS "; }"
      : REG(d[0]), REG(d[1]), REG(d[2]), REG(d[3]) : "l"(of_a), "l"(of_b), "r"(i), "r"(e));
#endif
  asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 4; ++i) D[4 * threadIdx.x + i] = d[i];
}
"""
)


def compiled(text: str, arch: str, **macros: str) -> PtxKernel:
    return tilefold.load_ptx(nvrtc.compile_cuda(text, "k.cu", arch, macros))["k"]


def make(form: Form, rows: int) -> tuple[NDArray[np.generic], NDArray[np.int64], NDArray[np.generic]]:
    """The elements of A (rows, K/2) that are there, the descriptions of its chunks, and B (8, K)."""
    rng = np.random.default_rng(rows)
    stored = rng.integers(0 if form.a[0] == "u" else -4, 5, (rows, form.k // 2)).astype(TYPES[form.a])
    b = rng.integers(0 if form.b[0] == "u" else -4, 5, (8, form.k)).astype(TYPES[form.b])
    return stored, rng.choice(CODES[form.chunk], (rows, form.k // form.chunk)), b


def product(
    form: Form, stored: NDArray[np.generic], codes: NDArray[np.int64], b: NDArray[np.generic]
) -> NDArray[np.float64]:
    whole = np.zeros((len(stored), form.k))
    np.put_along_axis(whole, chosen(form, codes), stored.astype(float), axis=1)
    return whole @ b.astype(float).T


FORMS = [
    (Form(32, "f32", "f16", "f16", 2), False), (Form(32, "f32", "bf16", "bf16", 2), True),
    (Form(16, "f32", "tf32", "tf32", 2), False), (Form(16, "f32", "tf32", "tf32", 2), True),
    (Form(64, "s32", "s8", "u8", 1), False), (Form(64, "f32", "e4m3", "e5m2", 1), True),
]  # fmt: skip


def run_warpgroup(form: Form, in_registers: bool, codes: NDArray[np.int64], select: int = 0) -> NDArray[np.generic]:
    stored, _, b = make(form, 64)
    e = np.concatenate([metadata(form, codes[16 * w : 16 * w + 16], select) for w in range(4)])
    each = 32 // form.bits
    t, i = np.arange(128)[:, None], np.arange(4 * each)
    row = 16 * (t // 32) + t % 32 // 4 + 8 * (i // each % 2)
    registers = packed(stored[row, t % 4 * each + 4 * each * (i // each // 2) + i % each], form.bits)
    floats, wide = form.d == "f32", form.bits == 16
    macros = {
        "FORM": f'"{form.k}.{form.d}.{form.a}.{form.b}"', "SELECT": f'"{select}"',
        "SIGNS": f'"{", 1, 1" if floats else ""}{", 0, 0" if wide else ""}"',
        "SIGNS_RS": f'"{", 1, 1" if floats else ""}{", 0" if wide else ""}"',
        "REG(x)": '"+f"(x)' if floats else '"+r"(x)', "SUM": "float" if floats else "int",
    } | ({"RS": "1"} if in_registers else {})  # fmt: skip
    d = np.zeros((128, 4), TYPES[form.d])
    kernel = compiled(WGMMA, "sm_90a", **macros)
    kernel(stored.view(np.uint8), b.view(np.uint8), e, registers, d).launch(1, 128)
    return d


@needs_nvrtc
@pytest.mark.parametrize(("form", "in_registers"), FORMS, ids=lambda given: getattr(given, "name", str(given)))
def test_wgmma(form: Form, in_registers: bool) -> None:
    stored, codes, b = make(form, 64)
    whole = 2 * product(form, stored, codes, b)
    t, i = np.arange(128)[:, None], np.arange(4)
    expected = whole[16 * (t // 32) + t % 32 // 4 + 8 * (i // 2), t % 4 * 2 + i % 2]
    for select in {0, form.selectors - 1}:
        assert np.array_equal(run_warpgroup(form, in_registers, codes, select).astype(float), expected)


@needs_nvrtc
def test_wgmma_needs_different_elements() -> None:
    form, in_registers = FORMS[0]
    _, codes, _ = make(form, 64)
    codes[40, 3] = 0b1010
    with pytest.raises(TilefoldError, match=r"row 40, columns 12 to 15, .*names one twice") as caught:
        run_warpgroup(form, in_registers, codes)
    assert caught.value.code is Code.SIM_METADATA


TCGEN05 = (
    COMMON
    + """
__device__ u64 matrix(const void *p, int bytes) {
  return (u64)(at(p) >> 4) | 8ull << 16 | (u64)(8 * bytes >> 4) << 32 | 1ull << 46;
}
extern "C" __global__ void k(const unsigned char *A, const unsigned char *B, const u32 *E, u32 *D) {
  __shared__ alignas(1024) unsigned char a[128 * 32], b[8 * 64];
  __shared__ alignas(8) u64 bar;
  __shared__ u32 base;
  fill(a, A, 128, 32);
  fill(b, B, 8, 64);
  if (threadIdx.x < 32)
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" :: "r"(at(&base)) : "memory");
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at(&bar)) : "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  u32 lanes = base + (threadIdx.x / 32 << 21), e = lanes + 16;
  asm volatile("tcgen05.st.sync.aligned.32x32b.x2.b32 [%0], {%1, %2};"
    :: "r"(e), "r"(E[2 * threadIdx.x]), "r"(E[2 * threadIdx.x + 1]) : "memory");
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  if (threadIdx.x == 0) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %5, 0; tcgen05.mma.sp.cta_group::1.kind::" KIND
      " [%0], %1, %2, [%3], %4, p; }"
      :: "r"(base), "l"(matrix(a, 32)), "l"(matrix(b, 64)), "r"(base + 16), "r"(SHAPE), "r"(0) : "memory");
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
      :: "r"(at(&bar)) : "memory");
  }
  asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra WAIT; }"
    :: "r"(at(&bar)) : "memory");
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  u32 d[8];
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
    : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]), "=r"(d[4]), "=r"(d[5]), "=r"(d[6]), "=r"(d[7]) : "r"(lanes));
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
  for (int i = 0; i < 8; ++i) D[8 * threadIdx.x + i] = d[i];
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  if (threadIdx.x < 32) {
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" :: "r"(base) : "memory");
  }
}
"""
)
_SHAPE = 1 << 2 | (8 >> 3) << 17 | (128 >> 4) << 24


def columns(form: Form, codes: NDArray[np.int64], select: int) -> NDArray[np.uint32]:
    """The two columns of metadata (128, 2), the other of which is garbage where only one is read."""
    words = np.full((128, 2), 0xDEADBEEF, np.int64)
    shifts = 4 * np.arange(8)
    if form.bits == 8:
        words = (codes.reshape(128, 2, 8) << shifts).sum(axis=2)
    else:
        for lane in range(128):
            row, half = lane // 16 * 16 + lane % 8, lane // 8 % 2
            given = np.concatenate([codes[r, 4 * half : 4 * half + 4] for r in (row, row + 8)])
            words[lane, select] = (given << shifts).sum()
    return words.astype(np.uint32)


@needs_nvrtc
@pytest.mark.parametrize(("form", "kind", "fields", "select"), [
    (Form(32, "f32", "f16", "f16", 2), "f16", 1 << 4, 0),
    (Form(32, "f32", "bf16", "bf16", 2), "f16", 1 << 4 | 1 << 7 | 1 << 10, 1),
    (Form(16, "f32", "tf32", "tf32", 2), "tf32", 1 << 4 | 2 << 7 | 2 << 10, 1),
    (Form(64, "f32", "e4m3", "e4m3", 1), "f8f6f4", 1 << 4, 0),
    (Form(64, "s32", "s8", "u8", 1), "i8", 2 << 4 | 1 << 7, 0),
], ids=lambda given: getattr(given, "name", None))  # fmt: skip
def test_tcgen05(form: Form, kind: str, fields: int, select: int) -> None:
    stored, codes, b = make(form, 128)
    kernel = compiled(TCGEN05, "sm_100a", KIND=f'"{kind}"', SHAPE=str(_SHAPE | fields | select))
    d = np.zeros((128, 8), TYPES[form.d])
    e = columns(form, codes, select)
    given = stored.view(np.uint8), b.view(np.uint8)
    kernel(*given, e, d.view(np.uint32)).launch(1, 128)
    assert np.array_equal(d.astype(float), product(form, stored, codes, b))
    codes[77, 2] = 0b1111 if form.chunk == 4 else 0
    with pytest.raises(TilefoldError, match="the metadata of row 77") as caught:
        kernel(*given, columns(form, codes, select), d.view(np.uint32)).launch(1, 128)
    assert caught.value.code is Code.SIM_METADATA
