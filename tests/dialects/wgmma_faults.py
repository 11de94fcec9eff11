# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: E501 - a fault and its message stand on one line
"""Faults of multiplications by warpgroups."""

from tests.dialects.faults import Fault, ptx_faults
from tests.dialects.samples import tile_program

ATOM = '#tile.mma_atom<"SM90_64x64x16_F32F16F16_SS<Major::K,Major::K>">'
RS = '#tile.mma_atom<"SM90_64x64x16_F32F16F16_RS<Major::K,Major::K>">'
SW128 = "f16 smem 1024 S<3,3,3> o 0 o (64,16):(64,1)"
ONE_A, ONE_C = "f16 smem 1024 S<3,3,3> o 0 o ((64,16)):((64,1))", "f32 rmem 16 ((2,2,8)):((1,2,4))"
C = "f32 rmem 16 (2,2,8):(1,2,4)"


def _operands(*operands: str) -> str:
    """Allocations of tensors %o0, %o1, ... given as element type, space, alignment and layout."""
    lines: list[str] = []
    for index, (element, space, align, layout) in enumerate(operand.split(" ", 3) for operand in operands):
        lines.append(f'%o{index} = tile.alloc : !tile.tensor<{element}, {space}, align<{align}>, "{layout}">\n')
    return "".join(lines)


def program(body: str, threads: int = 128) -> str:
    """A kernel for blocks of so many threads."""
    return tile_program(body).replace("threads(32)", f"threads({threads})")


def _call(
    said: str,
    a: str = SW128,
    b: str = SW128,
    c: str = C,
    threads: int = 128,
    op: str = "tile.mma_call",
    atom: str = ATOM,
) -> Fault:
    """An execution of the atom that breaks a rule."""
    names = "%o2, %o0, %o1, %o2" if op == "tile.mma_call" else "%o0, %o1, %o2"
    return Fault(op, program(f"{_operands(a, b, c)}«{op}» {atom} {names}", threads), said)


WARP_MORE = program(
    f"{_operands(SW128, SW128, C)}%whole = arith.constant 128 : index\n%first = arith.cmpi ult, %t, %whole : index\n"
    f"scf.if %first {{\ntile.mma_call {ATOM} %o2, %o0, %o1, %o2\n}}",
    threads=160,
)
"""A warpgroup multiplies, and a warp beside it does not."""

MMA = f"%m = tile.tiled_mma {ATOM}\n"
WGMMA_FAULTS = [
    _call("no descriptor describes the K-major operand (64,16):(65,1)", b="f16 smem 1024 (64,16):(65,1)"),
    *(
        Fault(
            f"tile.partition_{operand}",
            program(_operands("f16 smem 1024 S<2,3,3> o 0 o (64,24):(32,1)") + f"{MMA}%p = tile.partition_{operand} «%m, %o0, %t ragged»"),
            "mode 1 of the tensor has 24 elements, which tiles of 16 do not divide",
        )
        for operand in "AB"
    ),
    _call("B of SM90_64x64x16_F32F16F16_SS<Major::K,Major::K> is in shared memory (smem)", b="f16 rmem 16 (64,16):(16,1)"),
    _call("B of SM90_64x64x16_F32F16F16_SS<Major::K,Major::K> is in rmem; it can be in smem", a=ONE_A, b="f16 rmem 16 ((64,16)):((16,1))", c=ONE_C, op="tile.gemm"),
    _call("no descriptor describes the K-major operand", a="f16 smem 1024 S<3,3,3> o 0 o (64,16):(1,64)"),
    _call("wgmma has no swizzle S<2,2,3> of 16-bit elements", a="f16 smem 1024 S<2,2,3> o 0 o (64,16):(64,1)"),
    _call("must be aligned to 1024 bytes, as the hardware swizzles 128 bytes by bits of the address; it is known to be aligned to 128", b="f16 smem 128 S<3,3,3> o 0 o (64,16):(64,1)"),
    _call("must be aligned to 16 bytes; it is known", b="f16 smem 8 (64,(8,2)):(8,(1,512))"),
    Fault("tile.gemm", program(f"{_operands('f16 smem 1024 S<3,3,3> o 0 o (64,64):(64,1)', C)}%v = tile.view %o0 : !tile.tensor<f16, smem, align<1024>, \"S<3,3,3> o 0 o ((64,16),1,(2,2)):((64,1),0,(4,16))\">\n%z = tile.view %o1 : !tile.tensor<f32, rmem, align<16>, \"((2,2,8),1,1):((1,2,4),0,0)\">\n«tile.gemm» {ATOM} %v, %v, %z"), "begins at a multiple of 8 bytes; descriptors count units of 16 bytes"),
    Fault("tile.mma_call", program(f"{_operands('f16 smem 1024 S<3,3,3> o 64 o (64,16):(64,1)', C)}«tile.mma_call» {ATOM} %o1, %o0, %o0, %o1"), "begins within the 1024 bytes of its swizzle, 128 bytes after"),
    _call("one execution's part of operand D of SM90_64x64x16_F32F16F16_SS<Major::K,Major::K> holds 32 adjacent values", c="f32 rmem 16 (2,2,8):(16,8,1)"),
    _call("is executed by warpgroups of 128 threads, but the block has 192", threads=192),
    Fault("tile.gemm", program(f"{_operands(ONE_A, ONE_A, ONE_C, ONE_C)}«tile.gemm» {ATOM} %o3, %o0, %o1, %o2"), "adds to its accumulators in place: D is C"),
    Fault(
        "tile.gemm",
        program('%a = tile.alloc : !tile.tensor<f32, rmem, align<16>, "1:1">\n%p = arith.constant true\n«tile.gemm» %a, %a, %a accumulate %p'),
        "UniversalFMA<float> always adds C",
    ),
    Fault(
        "tile.gemm",
        program(f'{_operands("f16 rmem 16 ((2,2,2),7,1):((1,2,4),8,0)", SW128)}%b = tile.view %o1 : !tile.tensor<f16, smem, align<1024>, "S<3,3,3> o 0 o ((64,16),1,1):((64,1),0,0)">\n%z = tile.alloc : !tile.tensor<f32, rmem, align<16>, "((2,2,8),7,1):((1,2,4),32,0)">\n«tile.gemm» {RS} %o0, %b, %z'),
        "E0325",
    ),
    Fault("tile.make_fragment_A", program(f"{MMA}%0 = tile.make_fragment_A «%m, %A»"), "reads operand A from shared memory; the part is in gmem"),
    Fault("tile.make_fragment_B", program(f'{MMA}%i = tile.identity "(64,16)"\n%0 = tile.make_fragment_B «%m, %i»'), "the part is a coordinate tensor"),
    Fault("tile.make_fragment_B", program(f"{MMA}%p = tile.partition_B %m, %s, %t\n%0 = tile.make_fragment_B «%m, %p»"), "E0315"),
    *ptx_faults(
        "ptx.wgmma.mma_async",
        ('%0 = arith.constant false\n«ptx.wgmma.mma_async» "SM90_SPARSE_64x8x64_S32S8S8_SS_TN" %l, %v, %v, %0 : i64', "takes metadata and a selector"),
        ('%0 = arith.constant false\n«ptx.wgmma.mma_async» "SM90_64x8x32_S32S8S8_SS_TN" %l, %v, %v, %0 metadata %x select 0 : i64', "has no metadata"),
        ('%0 = arith.constant false\n«ptx.wgmma.mma_async» "SM90_SPARSE_64x8x64_S32S8S8_SS_TN" %l, %v, %v, %0 metadata %x select 1 : i64', "the sparsity selector is 1; SM90_SPARSE_64x8x64_S32S8S8_SS_TN has 0"),
    ),
    *ptx_faults(
        "ptx.wgmma.descriptor",
        ("%0 = «ptx.wgmma.descriptor» %s leading 16384 stride 64 swizzle 3", "the field `leading` is 16384; it has 14 bits"),
        ("%0 = «ptx.wgmma.descriptor» %s leading 1 stride 64 swizzle 4", "the swizzle xors 4 bits; 0 to 3 are possible"),
    ),
]  # fmt: skip
