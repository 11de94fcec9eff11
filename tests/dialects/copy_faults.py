# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: E501 - a fault and its message stand on one line
"""A program for every rule of predicates, cache hints, matrices and the ways of making a tiled copy that breaks it."""

from tests.dialects.faults import WIDE, Fault, ptx_faults, tile_faults

_MMA = '%m = tile.tiled_mma #tile.mma_atom<"SM80_16x8x16_F32F16F16F32_TN">\n'
_TYPE = f'!tile.tiled_copy<{WIDE}, "(32,8):(8,1)", "(64,4)">'
_PARTS = "%p = tile.partition_S %c, %A, %t\n%q = tile.partition_D %c, %s, %t\n"
_ZFILL = '#tile.copy_atom<"SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint128_t>", f16>'

_G2S, _S2G, _AUTO = (f'#tile.copy_atom<"SM90_BULK_COPY_{way}", f16>' for way in ("G2S", "S2G", "AUTO"))
_BAR = '%bars = tile.alloc : !tile.tensor<i64, smem, align<8>, "1:1">\n%bar = tile.ptr %bars(0)\n'
_S1 = '%s1 = tile.alloc : !tile.tensor<f16, smem, align<128>, "{}">\n'
_PIECES = (
    f'{_BAR}%v = tile.view %A : !tile.tensor<f16, gmem, align<16>, "8:1">\n'
    '%u = tile.view %s : !tile.tensor<f16, smem, align<16>, "8:1">\n'
)


def _flags(layout: str, element: str = "i1") -> str:
    return f'{_PARTS}%f = tile.alloc : !tile.tensor<{element}, rmem, align<4>, "{layout}">\n'


def _atoms(*cases: tuple[str, str]) -> list[Fault]:
    return [Fault("tile.copy_atom", f"!t = !tile.tiled_copy<{atom}\n", said) for atom, said in cases]


COPY_FORMS = [
    Fault("tile.tensor", '!t = «!tile.tensor<i1, smem, align<1>, "8:1">»\n', "predicates, i1, are in rmem only, not in smem"),
    *tile_faults(
        "tile.tiled_copy",
        (f"{_MMA}%0 = tile.tiled_copy {WIDE} A «%c»", "expected a tiled MMA, got a value of type !tile.tiled_copy"),
        (f"{_MMA}%0 = tile.tiled_copy {WIDE} S «%m»", "expected a tiled copy, got a value of type !tile.tiled_mma"),
        (f"{_MMA}%0 = tile.tiled_copy «{WIDE} C_atom %m»", "E0306"),
        (f'%0 = tile.tiled_copy «{WIDE} cotiled "(16,8):(32,4)" data "(8,16):(32,1)"»', "E0308"),
        (f'%0 = «"tile.tiled_copy"»(%c) <{{atom = {WIDE}, role = "A"}}> : ({_TYPE}) -> {_TYPE}', "the part is 'A'"),
    ),
    *tile_faults(
        "tile.retile_S",
        ("%0 = tile.retile_S «%r», %r", "expected a tiled copy"),
        ("%0 = tile.retile_S %c, «%t»", "expected a tensor"),
        ('%f = tile.alloc : !tile.tensor<f16, rmem, align<16>, "((4,2),3,3):((1,4),8,24)">\n'
         '%d = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint32_t>", f16> thr "(8,4):(1,8)" val "(2,8):(1,2)"\n'
         "%0 = tile.retile_S «%d, %f»", "E0314"),
    ),
    *tile_faults(
        "tile.retile_D",
        ('%f = tile.alloc : !tile.tensor<f16, rmem, align<16>, "(8,2,3):(1,8,16)">\n'
         '%0 = «tile.retile_D» %c, %f : !tile.tensor<f16, rmem, align<16>, "4:1">', "the result is"),
    ),
    *tile_faults(
        "tile.copy",
        (f'{_flags("8:1")}«tile.copy» %c, %p, %q if %f', "the predicates have 1 modes, the source of the copy 3"),
        (f'{_flags("(1,1,4):(0,0,1)")}«tile.copy» %c, %p, %q if %f', "mode 2 has 4 predicates for 8 elements"),
        (f'{_flags("(1,1,8):(0,0,1)", "i32")}«tile.copy» %c, %p, %q if %f', "E0316"),
        (f'{_flags("(1,1,8):(0,0,1)")}tile.copy %c, %p, %q if «%t»', "expected a tensor"),
        (f'{_flags("(1,1,8):(0,0,1)")}«tile.copy» %f, %f', "predicates (i1) cannot be copied"),
    ),
    *tile_faults(
        "tile.atom_call",
        ('%v = tile.view %A : !tile.tensor<f16, gmem, align<16>, "8:1">\n'
         f"«tile.atom_call» {WIDE} %v, %r count %x", "has no zero-fill"),
        ('%v = tile.view %A : !tile.tensor<f16, gmem, align<16>, "8:1">\n'
         f"tile.atom_call {_ZFILL} %v, %v count «%t»", "the value is of type index elsewhere, not i32"),
        ('%v = tile.view %A : !tile.tensor<f16, gmem, align<16>, "8:1">\n'
         '«tile.atom_call» #tile.copy_atom<"UniversalCopy<uint128_t>", f16, store "cs"> %v, %r', "E0317"),
        ('%v = tile.view %A : !tile.tensor<f16, gmem, align<16>, "8:1">\n'
         '«tile.atom_call» #tile.copy_atom<"UniversalCopy<uint128_t>", f16, load "cs"> %r, %v', "E0317"),
    ),
    *tile_faults(
        "tile.copy",
        (f"«tile.copy» {_G2S} %A, %s", "SM90_BULK_COPY_G2S has no mbarrier [E0324]"),
        (f"{_BAR}«tile.copy» {_S2G} %s, %A mbarrier %bar", "SM90_BULK_COPY_S2G does not take an mbarrier"),
        (f"{_BAR}«tile.copy» {_G2S} %s, %A mbarrier %bar", "E0309"),
        (f"«tile.copy» {_AUTO} %A, %B", "SM90_BULK_COPY_AUTO copies between gmem and smem, not from gmem to the same"),
        (f'{_BAR}«tile.copy» {_G2S.replace("f16", "bf16")} %A, %s mbarrier %bar', "E0303"),
        (f'{_BAR}{_S1.format("(64,32):(32,1)")}«tile.copy» {_G2S} %A, %s1 mbarrier %bar', "moves multiples of 8 adjacent elements, but 1 are adjacent"),
        (f'{_BAR}«tile.copy» {_G2S.replace("G2S", "G2S<768>")} %A, %s mbarrier %bar', "moves 48 adjacent elements, but 2048 are adjacent"),
        (f'{_BAR}{_S1.format("(64,32):(1,68)")}«tile.copy» {_G2S} %A, %s1 mbarrier %bar', "those in smem are only known to be aligned to 8"),
        (f'{_BAR}{_S1.format("(64,16):(1,64)")}«tile.copy» {_G2S} %A, %s1 mbarrier %bar', "mode 1 has 32 elements"),
        (f'{_BAR}{_S1.format("(32,32):(1,32)")}«tile.copy» {_G2S} %A, %s1 mbarrier %bar', "mode 0 has 64 elements"),
        (f"{_BAR}%m = arith.constant 3 : i16\n«tile.copy» {_G2S} %A, %s mbarrier %bar multicast %m", "no mask of blocks"),
        (f'{_BAR}%f = tile.alloc : !tile.tensor<i1, rmem, align<1>, "(64,32):(0,0)">\n«tile.copy» {_G2S} %A, %s if %f mbarrier %bar', "has no predicates"),
        (f"{_BAR}«tile.copy» %A, %s mbarrier %bar", "only a TMA copy has an mbarrier"),
    ),
    *tile_faults(
        "tile.prefetch_tensor",
        ("«tile.prefetch_tensor» %s", "the L2 cache holds elements of gmem, and the tensor is in smem"),
        ('%v = tile.view %A : !tile.tensor<f16, gmem, align<16>, "(4,8):(1,64)">\n«tile.prefetch_tensor» %v', "a bulk prefetch moves multiples of 8 adjacent elements, but 4 are adjacent"),
        ('%v = tile.view %A : !tile.tensor<f16, gmem, align<8>, "64:1">\n«tile.prefetch_tensor» %v', "E0312"),
        ('%v = tile.view %A : !tile.tensor<f16, gmem, align<16>, "1073741824:1">\n«tile.prefetch_tensor» %v', "less than 2^31 bytes"),
        ('%v = tile.view %A with (%t) : !tile.tensor<f16, gmem, align<16>, "?:1">\n«tile.prefetch_tensor» %v', "the extents of a copy are static"),
    ),
    *tile_faults(
        "tile.atom_call",
        (f"{_PIECES}«tile.atom_call» {_G2S} %v, %u mbarrier %bar", "has a direction and a known number of bits"),
        (f'{_PIECES}«tile.atom_call» {_AUTO.replace("AUTO", "AUTO<128>")} %v, %u mbarrier %bar', "has a direction"),
        (f'{_PIECES}«tile.atom_call» {_G2S.replace("G2S", "G2S<128>")} %v, %u', "SM90_BULK_COPY_G2S<128> has no mbarrier"),
        (f'{_PIECES}«tile.atom_call» {_G2S.replace("G2S", "G2S<256>")} %v, %u mbarrier %bar', "E0310"),
        (f"{_PIECES}«tile.atom_call» {WIDE} %v, %u mbarrier %bar", "only a bulk copy has an mbarrier and a policy"),
    ),
    *_atoms(
        ('#tile.copy_atom<«"SM90_BULK_COPY_G2S<100>"», f16>', "a bulk copy cannot move 100 bits"),
        ('#tile.copy_atom<«"SM90_BULK_COPY_S2G<2097152>"», f16>', "a bulk copy cannot move 2097152 bits"),
        ('#tile.copy_atom<"SM90_BULK_COPY_S2G", f16, load «"nc"»>', "E0317"),
        ('#tile.copy_atom<"UniversalCopy<uint128_t>", f16, load «"cz"»>', "E0317"),
        ('#tile.copy_atom<"UniversalCopy<uint128_t>", f16, store «"nc"»>', "E0317"),
        ('#tile.copy_atom<"SM75_U32x4_LDSM_N", f16, load «"nc"»>', "E0317"),
        ('#tile.copy_atom<"SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>", f16, load «"cs"»>', "E0317"),
        ('#tile.copy_atom<"UniversalCopy<uint128_t>", f16, «keep» "nc">', "load"),
        ('«#tile.copy_atom<"SM75_U32x1_MOVM_T", f32>»', "movmatrix transposes matrices of 16-bit elements"),
        ('«#tile.copy_atom<"SM100_SU4_DU8x16_x4_LDSM_N", i8>»', "makes bytes of elements of 4 bits"),
    ),
    *ptx_faults(
        "ptx.ld",
        ('%0 = «ptx.ld» %A cache "cz" align 4 : !ptx.ptr<global> -> i32', "E0317"),
        ("%0 = «ptx.ld» %s align 32 : !ptx.ptr<shared> -> vector<8xi32>", "32 bytes is for global memory"),
        ("%0 = «ptx.ld» %A align 16 : !ptx.ptr<global> -> vector<8xi32>", "needs an address aligned to 32 bytes"),
        ('%0 = «ptx.ld» %s cache "cs" align 4 : !ptx.ptr<shared> -> i32', "a cache hint is for global memory"),
    ),
    *ptx_faults("ptx.st", ('«ptx.st» %x, %A cache "nc" align 4 : i32, !ptx.ptr<global>', "E0317")),
    *ptx_faults("ptx.cp.async", ('«ptx.cp.async» "cg" 16 %s, %A prefetch "L2::512B"', "E0317")),
    *ptx_faults(
        "ptx.ldmatrix",
        ('%0 = «ptx.ldmatrix» x 1 trans "m8n8.b8" %s : vector<1xi32>', 'b8x16.b4x16_p64, not "m8n8.b8"'),
        ('%0 = «ptx.ldmatrix» x 4 trans "m16n16.b8" %s : vector<8xi32>', "moves 1, 2 matrices of this shape, not 4"),
        ('%0 = «ptx.ldmatrix» x 1 "m16n16.b8" %s : vector<2xi32>', "only transposed"),
        ('%0 = «ptx.ldmatrix» x 1 trans "m8n16.b8x16.b4x16_p64" %s : vector<1xi32>', "drop 'trans'"),
    ),
    *ptx_faults(
        "ptx.stmatrix",
        ("%0 = ptx.ldmatrix x 4 %s : vector<4xi32>\n«ptx.stmatrix» x 2 %0, %s : vector<4xi32>", "the registers of x2 are vector<2xi32>"),
        ('%0 = ptx.ldmatrix x 4 %s : vector<4xi32>\n«ptx.stmatrix» x 4 "m16n8.b8" %0, %s : vector<4xi32>', "only transposed"),
    ),
    *ptx_faults("ptx.movmatrix", ("%0 = ptx.movmatrix trans «%h»", "i32")),
]  # fmt: skip
