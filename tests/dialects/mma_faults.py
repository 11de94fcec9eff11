# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: E501 - a fault and its message stand on one line
"""Faults of MMA atoms, tiled MMAs, fragments and multiplications."""

from tests.dialects.faults import Fault, ptx_faults, tile_faults
from tests.dialects.samples import MXF8F6F4, NVF4, tile_program

_SCALED = f'ptx.mma.sync.block_scale "{NVF4}" (%x, %x, %x, %x), (%x, %x), (%f, %f, %f, %f)'
_MARKED = _SCALED.replace("ptx.mma.sync.block_scale", "«ptx.mma.sync.block_scale»")
_SPARSE = "SM80_SPARSE_16x8x16_F32F16F16F32_TN"
ATOM = '#tile.mma_atom<"SM80_16x8x8_F32F16F16F32_TN">'
MMA = f"%m = tile.tiled_mma {ATOM}\n"
TYPE = f'!tile.tiled_mma<{ATOM}, "(1,1,1):(0,0,0)", "(_,_,_)">'


def _operands(*operands: str) -> tuple[str, str]:
    """Allocations of tensors given as element type, space, alignment and layout; and their names, in this order."""
    lines: list[str] = []
    for index, (element, space, align, layout) in enumerate(operand.split(" ", 3) for operand in operands):
        lines.append(f'%o{index} = tile.alloc : !tile.tensor<{element}, {space}, align<{align}>, "{layout}">\n')
    return "".join(lines), ", ".join(f"%o{index}" for index in range(len(operands)))


def _gemm(said: str, *operands: str, op: str = "tile.gemm", atom: str = ATOM) -> Fault:
    """A multiplication of operands that cannot be multiplied."""
    allocations, names = _operands(*operands)
    return Fault(op, tile_program(f"{allocations}«{op}» {f'{atom} ' if atom else ''}{names}"), said)


A, B, C = "f16 rmem 16 4:1", "f16 rmem 16 2:1", "f32 rmem 16 4:1"
_SEGMENTS = "operandSegmentSizes = array<i32: 1, 0, 0>"
_ANY = '!tile.tensor<f16, gmem, align<16>, "(64,32):(1,64)">'

MMA_FAULTS = [
    *tile_faults(
        "tile.mma_atom",
        ('%m = tile.tiled_mma #tile.mma_atom<«"SM80_16x8x8"»>', "E0302"),
        ('%m = tile.tiled_mma #tile.mma_atom<«"SM90_64x264x16_F32F16F16_SS<Major::K,Major::K>"»>', "E0302"),
        ('%m = tile.tiled_mma #tile.mma_atom<«"SM90_64x64x16_F32F16F16_RS<Major::MN,Major::K>"»>', "E0302"),
    ),
    *tile_faults(
        "tile.tiled_mma",
        ('%m = tile.tiled_mma «#tile.copy_atom<"DefaultCopy", f16>»', "expected an MMA atom"),
        (f'%m = tile.tiled_mma {ATOM} atoms "(2,«x»)"', "E0101"),
        (f'%m = tile.tiled_mma {ATOM} «permute "()"»', "E0213"),
        (f'%m = tile.tiled_mma {ATOM} «permute "((),16)"»', "E0213"),
        (f'%m = tile.tiled_mma {ATOM} «atoms "(2,2,1,1):(1,2,4,4)"»', "E0202"),
        (f'%m = tile.tiled_mma {ATOM} «atoms "S<1,0,1> o 0 o (2,2):(1,2)"»', "E0211"),
        (f'%m = «tile.tiled_mma» {ATOM} atoms "S<1,0,1> o 0 o (2,2):(1,2)" : {TYPE}', "E0211"),
        (f'%m = «tile.tiled_mma» {ATOM} atoms "(2,1,1):(1,0,0)" : {TYPE}', "the result is"),
        (
            f'%m = tile.tiled_mma {ATOM} : !tile.tiled_mma<«#tile.copy_atom<"DefaultCopy", f16>», "1:0", "1">',
            "expected an MMA atom",
        ),
        (
            f'%m = tile.tiled_mma {ATOM} : «!tile.tiled_mma<{ATOM}, "S<1,0,1> o 0 o (1,1,1):(0,0,0)", "(_,_,_)">»',
            "E0211",
        ),
        (f'%m = tile.tiled_mma {ATOM} : «!tile.tiled_mma<{ATOM}, "(1,1):(0,0)", "(_,_,_)">»', "E0202"),
        (f'%m = tile.tiled_mma {ATOM} : «!tile.tiled_mma<{ATOM}, "(1,?,1):(0,0,0)", "(_,_,_)">»', "is not static"),
    ),
    *tile_faults(
        "tile.partition_A",
        (f"{MMA}tile.partition_A «%A», %A, %t", "expected a tiled MMA"),
        (f"{MMA}tile.partition_A %m, «%t», %t", "expected a tensor"),
        (f'{MMA}%0 = «"tile.partition_A"»(%m, %A) : ({TYPE}, {_ANY}) -> {_ANY}', "one thread index"),
        (f"{MMA}%s1 = tile.slice %A, (_, 0)\n%0 = tile.partition_A «%m, %s1, %t»", "E0307"),
    ),
    *tile_faults(
        "tile.partition_B",
        (f'{MMA}%s1 = tile.local_tile %A, "(4,32)", (0, 0)\n%0 = tile.partition_B «%m, %s1, %t»', "E0314"),
    ),
    *tile_faults("tile.partition_C", (f"{MMA}%0 = «tile.partition_C» %m, %A, %t : {_ANY}", "the result is")),
    *(
        fault
        for operand in "ABC"
        for fault in tile_faults(
            f"tile.make_fragment_{operand}",
            (
                f'{MMA}%0 = «tile.make_fragment_{operand}» %m, %A : !tile.tensor<f16, rmem, align<8>, "(64,32):(1,64)">',
                "the result is",
            ),
        )
    ),
    *tile_faults(
        "tile.make_fragment_like",
        ("%0 = tile.make_fragment_like %A : «i32»", "expected a tensor type"),
        (
            '%b = tile.alloc : !tile.tensor<f16, smem, align<16>, "40000:1">\n%0 = «tile.make_fragment_like» %b',
            "at most 65536",
        ),
    ),
    Fault("tile.gemm", tile_program(f"{MMA}tile.gemm «%m, %A, %A»"), "expected tensors A, B, C or D, A, B, C"),
    Fault(
        "tile.gemm",
        tile_program('tile.gemm «#tile.copy_atom<"DefaultCopy", f16>» %A, %A, %A'),
        "expected an MMA atom or an operand",
    ),
    Fault(
        "tile.gemm", tile_program(f"{MMA}{_operands(A, B, C)[0]}«tile.gemm» {ATOM} %m, %o0, %o1, %o2"), "given twice"
    ),
    _gemm("E0318", "si4 rmem 1 2:1", "si4 rmem 1 2:1", "i32 rmem 4 1:1", atom=""),
    _gemm("f32 does not widen to f16", "f32 rmem 4 1:1", "f32 rmem 4 1:1", "f16 rmem 2 1:1", atom=""),
    _gemm("have ranks 1, 2, 1 and 1", "f16 rmem 16 (4,2):(1,4)", B, C),
    _gemm("are for atoms of one value", A, B, "f32 rmem 16 (4,2):(1,4)"),
    _gemm("mode M of A has 3", "f16 rmem 16 (4,3):(1,4)", "f16 rmem 16 (2,2):(1,2)", "f32 rmem 16 (4,2,2):(1,4,8)"),
    _gemm("mode N of B has 3", "f16 rmem 16 (4,2):(1,4)", "f16 rmem 16 (2,3):(1,2)", "f32 rmem 16 (4,2,2):(1,4,8)"),
    _gemm(
        "mode K of B has 2", "f16 rmem 16 (4,1,3):(1,4,4)", "f16 rmem 16 (2,1,2):(1,2,2)", "f32 rmem 16 (4,1,1):(1,4,4)"
    ),
    _gemm(
        "mode M of D has 2",
        "f32 rmem 16 (4,2,1):(1,4,8)",
        "f16 rmem 16 (4,1):(1,4)",
        "f16 rmem 16 (2,1):(1,2)",
        "f32 rmem 16 (4,1,1):(1,4,4)",
    ),
    _gemm(
        "cannot accumulate over K",
        "f32 rmem 16 (1,1,1):(1,1,1)",
        "f16 rmem 16 (1,1,2):(1,1,1)",
        "f16 rmem 16 (1,1,2):(1,1,1)",
        "f16 rmem 16 (1,1,1):(1,1,1)",
        atom='#tile.mma_atom<"UniversalFMA<float,half_t,half_t,half_t>">',
    ),
    _gemm("holds f16, not bf16", "bf16 rmem 16 4:1", B, C),
    _gemm("operand D of SM80_16x8x8_F32F16F16F32_TN is in smem; it can be in rmem", A, B, "f32 smem 16 4:1"),
    _gemm("has 4 values of A per thread, but mode 0 is 8:1", "f16 rmem 16 8:1", B, C),
    _gemm("E0311", "f16 rmem 16 4:2", B, C),
    _gemm("E0312", "f16 rmem 2 4:1", B, C),
    _gemm("E0312", "f16 rmem 16 (4,2):(1,5)", "f16 rmem 16 (2,2):(1,2)", "f32 rmem 16 (4,2,2):(1,4,8)"),
    _gemm(
        "two results of the multiplication",
        "f16 rmem 16 (4,2):(1,4)",
        "f16 rmem 16 (2,2):(1,2)",
        "f32 rmem 16 (4,2,2):(1,0,4)",
    ),
    _gemm("E0206", "f16 rmem 16 (4,2):(1,4)", "f16 rmem 16 (2,2):(1,2)", "f32 rmem 16 (4,2,2):(1,2,8)"),
    _gemm("is in registers", C, "f16 smem 16 4:1", B, C, op="tile.mma_call"),
    Fault(
        "tile.mma_call",
        tile_program(f"{_operands(C, A, B)[0]}tile.mma_call «%»o0, %o1, %o2, %o0"),
        "expected an MMA atom",
    ),
    *ptx_faults(
        "ptx.mma.sync",
        ('%0:4 = ptx.mma.sync «"SM80"» (), (), ()', "E0302"),
        ('%0 = ptx.mma.sync «"UniversalFMA<float>"» (), (), ()', "not an instruction of a warp"),
        (
            '%0:4 = ptx.mma.sync "SM80_16x8x8_F32F16F16F32_TN" «(%x)», (%x), (%x)',
            "operand A of SM80_16x8x8_F32F16F16F32_TN is 2 registers",
        ),
        (f'%0 = «"ptx.mma.sync"»(%x) <{{atom_name = "SM80", {_SEGMENTS}}}> : (i32) -> i32', "E0302"),
        (
            f'%0 = «"ptx.mma.sync"»(%x) <{{atom_name = "UniversalFMA<float>", {_SEGMENTS}}}> : (i32) -> i32',
            "not an instruction of a warp",
        ),
        (
            f'%0 = «"ptx.mma.sync"»(%x) <{{atom_name = "SM80_8x8x4_F64F64F64F64_TN", {_SEGMENTS}}}> : (i32) -> i32',
            "is 1 of f64, not i32",
        ),
        (f'%0:4 = ptx.mma.sync «"{MXF8F6F4}"» (%x), (%x), (%x)', "has scales"),
        (f'%0:4 = ptx.mma.sync «"{_SPARSE}"» (%x), (%x), (%x)', "has metadata"),
        (
            f'%0 = «"ptx.mma.sync"»(%x) <{{atom_name = "{_SPARSE}", {_SEGMENTS}}}> : (i32) -> i32',
            "write ptx.mma.sync.sp",
        ),
    ),
    *ptx_faults(
        "ptx.mma.sync.sp",
        ('%0:4 = ptx.mma.sync.sp «"SM80_16x8x8_F32F16F16F32_TN"» (), (), ()', "has no metadata"),
        (
            f'%f = arith.constant 1.0 : f32\n%0:4 = «ptx.mma.sync.sp» "{_SPARSE}" (%x, %x), (%x, %x), (%f, %f, %f, %f) metadata %x select 4',
            "the sparsity selector is 4; SM80_SPARSE_16x8x16_F32F16F16F32_TN has 0 to 3",
        ),
        (
            '%0 = «"ptx.mma.sync.sp"»(%x, %x) <{atom_name = "SM80_8x8x4_F64F64F64F64_TN", select = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 1>}> : (i32, i32) -> i32',
            "has no metadata; write ptx.mma.sync",
        ),
    ),
    *ptx_faults(
        "ptx.mma.sync.block_scale",
        ('%0:4 = ptx.mma.sync.block_scale «"SM120"» (), (), ()', "E0302"),
        ('%0:4 = ptx.mma.sync.block_scale «"SM80_16x8x8_F32F16F16F32_TN"» (), (), ()', "has no scales"),
        *(
            (f"%f = arith.constant 1.0 : f32\n%0:4 = {op} {of_scales}", said)
            for op, of_scales, said in (
                (_SCALED, "scales «(%x)» select (0, 0, 0, 0)", "expected the registers of the scales of A and B"),
                (_SCALED, "scales (%x, %x) select «(0, 0)»", "expected byte and thread"),
                (_MARKED, "scales (%x, %x) select (2, 0, 0, 0)", "the scales of A begin at byte 2"),
                (_MARKED, "scales (%x, %x) select (0, 2, 0, 0)", "the scales of A are in thread 2; it is 0 to 1"),
                (_MARKED, "scales (%x, %x) select (0, 0, 4, 0)", "the scales of B begin at byte 4"),
                (_MARKED, "scales (%x, %x) select (0, 0, 0, -1)", "the scales of B are in thread -1; it is 0 to 3"),
            )
        ),
    ),
]
