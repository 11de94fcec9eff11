# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: E501 - a fault and its message stand on one line
"""A program for every rule of tensor maps and TMA copies that breaks it."""

from tests.dialects.faults import Fault, tile_faults
from tests.dialects.samples import tile_program
from tests.dialects.tma_samples import TMA_TYPE, tma_setup

_LOAD, _STORE, _MULTICAST = tma_setup(), tma_setup("STORE"), tma_setup(multicast=2)
_MAP = 'tile.tensor_map "SM90_TMA_LOAD"'
_I = "%i = arith.constant 0 : index\n"
_PLAIN = '"(64,32):(1,64)"'
_GROUPED = '!tile.tensor<f16, smem, align<128>, "((64,32)):((1,64))">'
_C = '!tile.coord_tensor<"(?,?) o (64,32):(1@0,1@1)">'


def _smem(element: str, align: int, layout: str) -> str:
    return f'%s1 = tile.alloc : !tile.tensor<{element}, smem, align<{align}>, "{layout}">\n'


def _gmem(element: str, align: int, layout: str) -> str:
    """A map of another view of %A."""
    return f'%b = tile.recast %A, {element}\n%v = tile.view %b : !tile.tensor<{element}, gmem, align<{align}>, "{layout}">\n'


def _types(*cases: tuple[str, str]) -> list[Fault]:
    return [Fault("tile.tma", f"!t = {type}\n", said) for type, said in cases]


_ROWS = _gmem("f16", 16, "(512,4):(4,1)") + f'%m = {_MAP} %v smem "(64,4):(4,1)"\n%rows = tile.tma_tensor %m\n'
"""The coordinates of rows of 8 bytes, which share a dimension of their map."""

TENSOR_MAPS = [
    *tile_faults(
        "tile.tensor_map",
        (f'%0 = {_MAP} «%s smem {_PLAIN}»', "a tensor map describes a tensor in gmem, not in smem"),
        (f'%0 = {_MAP} «%A smem "(64,8):(1,64)" tiler "(64,4)"»', "E0323"),
        (f'%0 = {_MAP} «%A smem "(64,8):(8,1)"»', "E0322"),
        (f'%0 = {_MAP} «%A smem "S<3,4,3> o 0 o (64,8):(1,64)"»', "TMA does not swizzle shared memory as"),
        (f'%0 = tile.tensor_map "SM90_TMA_LAOD" «%A smem {_PLAIN}»', "E0302"),
        (f'%0 = {_MAP} «%A smem {_PLAIN} multicast 2»', "SM90_TMA_LOAD does not load tiles for 2 blocks"),
        (f'%0 = tile.tensor_map "SM90_TMA_LOAD_MULTICAST" «%A smem {_PLAIN} multicast 17»', "for 17 blocks"),
        (f'%0 = tile.tensor_map "SM90_TMA_LOAD_MULTICAST" «%A smem {_PLAIN} multicast 3»', "3 blocks cannot share the box"),
        (_gmem("f16", 16, "(64,?):(1,66)").replace(' :', " with (%t) :", 1) + f'%0 = {_MAP} «%v smem {_PLAIN}»', "a stride of 132 bytes"),
        (_gmem("f16", 16, "(64,32):(?,64)").replace(' :', " with (%t) :", 1) + f'%0 = {_MAP} «%v smem {_PLAIN}»', "E0322"),
        (_gmem("f16", 16, "S<3,3,3> o 0 o (64,32):(1,64)").replace("tile.view %b", "tile.view %b") + f'%0 = {_MAP} «%v smem {_PLAIN}»', "the layout is swizzled"),
        (f'%0 = {_MAP} «%A smem {_PLAIN} as "f32"»', "no tensor map has elements of type f16 as f32"),
        (_gmem("f16", 16, "(60,32):(1,64)") + '%0 = tile.tensor_map "SM90_TMA_STORE" «%v smem "(64,8):(1,64)"»', "its rows have 120 bytes; GPUs write multiples of 16"),
        (_gmem("f64", 16, "(64,8):(1,64)") + '%0 = tile.tensor_map "SM90_TMA_REDUCE_MIN" «%v smem "(64,8):(1,64)"»', "does not combine elements of type f64"),
        (f'%0 = «tile.tensor_map» "SM90_TMA_LOAD" %A smem {_PLAIN} : {TMA_TYPE.replace("f16", "bf16")}', "the result is"),
    ),
    *tile_faults(
        "tile.tma_tensor",
        ("%0 = tile.tma_tensor «%A»", "expected a tensor map, got a value of type !tile.tensor"),
        (f'{_LOAD}%0 = «tile.tma_tensor» %a : {_C}', "the result is"),
    ),
    *tile_faults(
        "tile.tma_partition",
        (f'{_LOAD}%0 = tile.tma_partition «%a, %s, 0 in "1:0"»', "mode 0 has 64 elements, a tile of the copy 2048"),
        (f'{_LOAD}%0 = tile.tma_partition «%a, %sg, 0 in "2:1"»', "numbers 2 blocks, the map's multicast is for 1"),
        (f'{_MULTICAST}%0 = tile.tma_partition «%a, %sg, 2 in "2:1"»', "E0215"),
        (f'{_LOAD}%b = tile.group_modes %A, [0, 2]\n%0 = tile.tma_partition «%a, %b, 0 in "1:0"»', "moves tiles of smem, but the tensor is in gmem"),
        (f'{_LOAD}{_smem("bf16", 128, "((64,32)):((1,64))")}%0 = tile.tma_partition «%a, %s1, 0 in "1:0"»', "the map is of f16, shared memory of bf16"),
        (f'{_LOAD}{_smem("f16", 1024, "S<3,3,3> o 0 o ((64,32)):((1,64))")}%0 = tile.tma_partition «%a, %s1, 0 in "1:0"»', "the map swizzles shared memory as"),
        (f'{_LOAD}{_smem("f16", 128, "((64,32)):((32,1))")}%0 = tile.tma_partition «%a, %s1, 0 in "1:0"»', "moves 2048 neighbours in shared memory"),
        (f'{_LOAD}%0 = «"tile.tma_partition"»(%a, %sg, %t) <{{coord = #cute.coord<"0">, blocks = #cute.layout<"1:0">}}> : ({TMA_TYPE}, {_GROUPED}, index) -> {_GROUPED}', "the coordinate names 0 operands, not 1"),
        (f'{_LOAD}%0 = «"tile.tma_partition"»(%a, %sg) <{{coord = #cute.coord<"?">, blocks = #cute.layout<"1:0">}}> : ({TMA_TYPE}, {_GROUPED}) -> {_GROUPED}', "the coordinate names 1 operands, not 0"),
        (f'{_LOAD}%i = tile.identity "((32,64))"\n%0 = tile.tma_partition «%a, %i, 0 in "1:0"»', "E0323"),
    ),
    *tile_faults(
        "tile.copy",
        (f"{_LOAD}«tile.copy» %a, %cp, %sp", "SM90_TMA_LOAD has no mbarrier [E0324]"),
        (f"{_STORE}«tile.copy» %a, %sp, %cp mbarrier %bar", "SM90_TMA_STORE does not take an mbarrier"),
        (f"{_MULTICAST}«tile.copy» %a, %cp, %sp mbarrier %bar", "has no mask of blocks"),
        (f"{_LOAD}«tile.copy» %a, %cp, %sp mbarrier %bar multicast %mask", "does not take a mask of blocks"),
        (f"{_LOAD}«tile.copy» %a, %sp, %cp mbarrier %bar", "SM90_TMA_LOAD copies from tile.tma_tensor to smem"),
        (f"{_STORE}«tile.copy» %a, %cp, %sp", "SM90_TMA_STORE copies from smem to tile.tma_tensor"),
        (f"{_LOAD}«tile.copy» %a, %c0, %sp mbarrier %bar", "an instruction moves 2048 values"),
        (f"{_LOAD}«tile.copy» %cp, %sp", "only a TMA copy takes a tensor of coordinates"),
        ("%p = arith.constant 1 : i64\n«tile.copy» %A, %s policy %p", "only a TMA copy has an mbarrier"),
        ("%d = tile.ptr %B(0, 0)\n«tile.copy» %A, %s descriptor %d", "only a TMA copy has an mbarrier"),
        (f'{_LOAD}%f = tile.alloc : !tile.tensor<i1, rmem, align<4>, "1:0">\n«tile.copy» %a, %cp, %sp if %f mbarrier %bar', "a TMA copy has no predicates"),
        (f'{_LOAD}{_smem("f16", 128, "((64,32),2):((1,64),2048)")}%s2 = tile.tma_partition %a, %s1, 0 in "1:0"\n'
         "«tile.copy» %a, %cp, %s2 mbarrier %bar", "repeat instructions [] and [2] times"),
        (f'{_LOAD}{_smem("f16", 64, "((64,32)):((1,64))")}%s2 = tile.tma_partition %a, %s1, 0 in "1:0"\n'
         "«tile.copy» %a, %cp, %s2 mbarrier %bar", "needs shared memory aligned to 128 bytes"),
        (f'%a = {_MAP} %A smem "S<3,3,3> o 0 o (64,32):(1,64)"\n%c0 = tile.tma_tensor %a\n%cg = tile.group_modes %c0, [0, 2]\n'
         f'%cp = tile.tma_partition %a, %cg, 0 in "1:0"\n{_smem("f16", 512, "S<3,3,3> o 0 o ((64,32)):((1,64))")}'
         '%sp = tile.tma_partition %a, %s1, 0 in "1:0"\n%bar = tile.ptr %s1((0, 0))\n«tile.copy» %a, %cp, %sp mbarrier %bar',
         "a TMA copy with a swizzle of 128 bytes needs shared memory aligned to 1024 bytes"),
        (f'%a = {_MAP} %A smem "(64,1):(1,64)"\n%c0 = tile.tma_tensor %a\n%ct = tile.local_tile %c0, "(64,1)", (0, _)\n%cg = tile.group_modes %ct, [0, 2]\n'
         f'%cp = tile.tma_partition %a, %cg, 0 in "1:0"\n{_smem("f16", 128, "((64,1),32):((1,0),72)")}'
         '%sp = tile.tma_partition %a, %s1, 0 in "1:0"\n%bar = tile.ptr %s1((0, 0), 0)\n«tile.copy» %a, %cp, %sp mbarrier %bar',
         "begin at multiples of 128 bytes, but only of 144"),
    ),
    *tile_faults(
        "tile.coord_tensor",
        (f"{_I}%0 = «tile.coord_tensor» (%i) : {_C}", "the coordinates have 2 integers, but 1 are given"),
        (f"{_I}%0 = «tile.coord_tensor» (%i, %i) : {_C.replace('(64', '(?')}", "is not static"),
    ),
    *tile_faults("tile.tensor_map_ptr", (f"{_LOAD}%m = tile.tensor_map_ptr «%x»", "expected a tensor map, got a value of type i32")),
    *tile_faults(
        "tile.copy_tensor_map",
        (f"{_LOAD}«tile.copy_tensor_map» %a, %x", "expected ptx.ptr, not i32"),
        (f"{_LOAD}%l = ptx.local.alloc 128 align 128\n«tile.copy_tensor_map» %a, %l", "a map is in global or shared memory"),
    ),
    *tile_faults(
        "tile.update_tensor_map",
        (f"{_LOAD}%l = ptx.local.alloc 128 align 128\n«tile.update_tensor_map» %a, %B at %l", "a map is in global or shared memory"),
        (f"{_LOAD}«tile.update_tensor_map» %a, %s at %bar", "a map of f16 in gmem cannot become one of"),
        (f'{_LOAD}%v = tile.view %B : !tile.tensor<f16, gmem, align<16>, "(8,8,32):(1,8,64)">\n«tile.update_tensor_map» %a, %v at %bar', "has other modes"),
        (f'{_LOAD}%v = tile.view %B : !tile.tensor<f16, gmem, align<16>, "(64,32):(32,1)">\n«tile.update_tensor_map» %a, %v at %bar', "E0322"),
    ),
    *tile_faults(
        "tile.domain_offset",
        (_ROWS + "%o = «tile.domain_offset» %rows, (0, %t)", "along a mode that shares dimension 0"),
        (_ROWS + "%o = «tile.domain_offset» %rows, (0, 1)", "E0323"),
    ),
    *tile_faults(
        "tile.prefetch",
        (f"{_LOAD}«tile.prefetch» %a policy %p", "the prefetch of a map has no cache policy"),
        (f"{_LOAD}«tile.prefetch» %a, %c0", "an instruction moves 2048 values"),
    ),
    *tile_faults(
        "tile.tma_call",
        (f"{_LOAD}{_I}«tile.tma_call» %a(%i)", "the map has 2 dimensions, the coordinate 1"),
        (f"{_LOAD}{_I}«tile.tma_call» %a(%i, %i) mbarrier %bar", "a prefetch does not take an mbarrier"),
        (f"{_LOAD}{_I}«tile.tma_call» %a(%i, %i) multicast %mask", "a prefetch does not take a mask"),
        (f"{_LOAD}{_I}«tile.tma_call» %a(%i, %i), %sp", "SM90_TMA_LOAD has no mbarrier"),
    ),
    Fault(
        "tile.tensor_map", tile_program(_MULTICAST.replace("= tile.tensor_map", "= «tile.tensor_map»")).replace("threads(32)", "threads(32) cluster(3, 1, 1)"),
        "2 blocks share the tiles of the map, but a cluster of the kernel has 3",
    ),
    Fault(
        "tile.copy", tile_program(_MULTICAST + "%far = arith.constant 5 : i16\n«tile.copy» %a, %cp, %sp mbarrier %bar multicast %far").replace("threads(32)", "threads(32) cluster(2, 1, 1)"),
        "the mask 0x0005 names blocks beyond the 2 of a cluster",
    ),
    *_types(
        ('«!tile.tma<"SM90_TMA_LOAD", f16, "(64,31):(1,33)", "(64,8):(1,64)", "(64,8)">»', "a stride of 66 bytes"),
        ('«!tile.tma<"SM90_TMA_LOAD", f16, "(64,32):(1,64)", "(64,32):(1,?)", "(64,32)">»', "is static, unlike (64,32):(1,?)"),
        ('«!tile.tma<"SM90_TMA_LOAD", f16, "(64,32):(1,64)", "(64,32):(1@0,1@1)", "(64,32)">»', "is static, unlike"),
        ('«!tile.tma<"SM90_TMA_LOAD", i8, "(512,1048576):(1,512)", "(512,1048576):(1,512)", "(512,1048576)">»', "does not fit in shared memory"),
        ('!tile.tma<"SM90_TMA_LOAD", f16, "(64,32):(1,64)", "«x»", "(64,8)">', "E0101"),
    ),
]  # fmt: skip
