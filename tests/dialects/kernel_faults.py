# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: E501 - a fault and its message stand on one line
"""Faults of kernels, types and attributes."""

from tests.dialects.faults import Fault
from tests.dialects.samples import ptx_program, tile_program

_T = '!tile.tensor<f32, gmem, align<16>, "32:1">'
_P, _MAP = "!ptx.ptr<global> align 16", "!ptx.tensor_map"
_ENTRY = 'sym_name = "k", arg_names = [], arg_aligns = array<i64>, function_type = () -> ()'


def _module(kernel: str) -> str:
    return f"gpu.module @m {{\n{kernel}\n}}\n"


def _both(head: str, said: str) -> list[Fault]:
    """The same fault of `tile.kernel` and `ptx.entry`; `head` stands between the operation and its body."""
    return [
        Fault("tile.kernel", _module(f"«tile.kernel» {head} {{\ntile.return\n}}"), said),
        Fault("ptx.entry", _module(f"«ptx.entry» {head} {{\nptx.ret\n}}"), said),
    ]


def _generic(name: str, properties: str, block: str, end: str) -> str:
    return _module(f'«"{name}"»() <{{{properties}}}> ({{\n^bb0({block}):\n"{end}"() : () -> ()\n}}) : () -> ()')


KERNELS = [
    *_both('@"a b"() threads(32)', "must consist of letters, digits and underscores"),
    *_both(f"@k{'x' * 300}() threads(32)", "must consist of letters, digits and underscores"),
    *_both("@k() threads(0)", "the block is (0, 1, 1) threads"),
    *_both("@k() threads(1, 1, 65)", "at most (1024, 1024, 64)"),
    *_both("@k() threads(64, 32)", "the block has 2048 threads; at most 1024"),
    *_both("@k() threads(32) cluster(0)", "the cluster is (0, 1, 1) blocks; x, y, z are at least 1"),
    *_both("@k() threads(32) cluster(4, 4)", "the cluster has 16 blocks; at most 8 are possible"),
    *_both("@k() threads(32) cluster(17) non_portable", "the cluster has 17 blocks; at most 16 are possible"),
    *_both("@k() threads(32) min_blocks(0)", "min_blocks is 0; 1 to 32 are possible"),
    *_both("@k() threads(32) max_registers(256)", "max_registers is 256; 1 to 255 are possible"),
    *_both("@k(%a.b: i32) threads(32)", "the argument's name 'a.b' must consist of letters"),
    Fault("tile.kernel", _module("tile.kernel @k() threads«(1, 1, 1, 1)» {\ntile.return\n}"), "one to three sizes"),
    Fault("tile.kernel", _module("tile.kernel @k() «{»\ntile.return\n}"), "'threads'"),
    Fault("tile.kernel", _module(f"tile.kernel @k«(%A: {_T} align 16)» threads(32) {{\ntile.return\n}}"), "part of its type"),
    Fault(
        "tile.kernel",
        _module(f"«tile.kernel» @k(%A: {_T.replace('gmem', 'smem')}) threads(32) {{\ntile.return\n}}"),
        "argument 'A' must be in gmem",
    ),
    Fault("tile.kernel", _module("«tile.kernel» @k(%A: index) threads(32) {\ntile.return\n}"), "argument 'A' must be a tensor"),
    Fault(
        "tile.kernel",
        _module('«tile.kernel» @k(%A: !tile.tensor<f32, gmem, align<4>, "S<1,0,1> o ? o 8:1">) threads(1) {\ntile.return\n}'),
        "unknown offset",
    ),
    Fault(
        "tile.kernel",
        _module("«tile.kernel» @k(%a: i32) threads(32) {\ntile.return\n^bb1:\ntile.return\n}"),
        "a kernel's body is one block",
    ),
    Fault(
        "tile.kernel",
        _generic(
            "tile.kernel",
            'sym_name = "k", arg_names = ["a"], threads = array<i64: 1, 1, 1>, function_type = (i32, i32) -> ()',
            "%a: i32, %b: i32", "tile.return",
        ),
        "1 names for 2 arguments",
    ),
    Fault(
        "tile.kernel",
        _generic(
            "tile.kernel",
            'sym_name = "k", arg_names = ["a", "a"], threads = array<i64: 1, 1, 1>, function_type = (i32, i32) -> ()',
            "%a: i32, %b: i32", "tile.return",
        ),
        "two arguments have the same name",
    ),
    Fault(
        "tile.kernel",
        _generic(
            "tile.kernel",
            'sym_name = "k", arg_names = ["a"], threads = array<i64: 1, 1, 1>, function_type = (i32) -> ()',
            "%a: i64", "tile.return",
        ),
        "the body's arguments differ from the function type",
    ),
    Fault("ptx.entry", _generic("ptx.entry", f"{_ENTRY}, threads = array<i64: 32>", "", "ptx.ret"), "the block is (32,)"),
    Fault("ptx.entry", _module("«ptx.entry» @k(%A: !ptx.ptr<global>) threads(32) {\nptx.ret\n}"), "alignment of argument 'A' is 0"),
    Fault("ptx.entry", _module("«ptx.entry» @k(%A: !ptx.ptr<global> align 12) threads(32) {\nptx.ret\n}"), "not a power of two"),
    Fault(
        "ptx.entry",
        _generic("ptx.entry", f"{_ENTRY.replace('array<i64>', 'array<i64: 1>')}, threads = array<i64: 1, 1, 1>", "", "ptx.ret"),
        "1 alignments for 0 arguments",
    ),
    Fault(
        "ptx.entry",
        _generic("ptx.entry", f"{_ENTRY}, threads = array<i64: 1, 1, 1>, shared_bytes = -1 : i64", "", "ptx.ret"),
        "the bytes of shared memory are negative",
    ),
    *(
        Fault("ptx.entry", _module(f"«ptx.entry» @k({args}) threads(32) {{\nptx.ret\n}}"), said)
        for args, said in (
            ("%m: !ptx.tensor_map", "each argument of type !ptx.tensor_map, and no other, has a recipe"),
            (f'%A: {_P}, %m: i32 of "f16 A dims (8) box (8)"', "each argument of type !ptx.tensor_map, and no other"),
            (f'%A: {_P}, %m: {_MAP} of "f16 A dims (8) box (8)", %x: i32', "not among the last arguments"),
            (f'%A: {_P}, %m: {_MAP} of "f16 B dims (8) box (8)"', "is of 'B', which is not a pointer to global memory"),
            (f'%A: {_P}, %f: f32, %m: {_MAP} of "f16 A dims (f) box (8)"', "depends on 'f', which is not an integer"),
        )
    ),
    Fault(
        "ptx.entry",
        _generic("ptx.entry", f'{_ENTRY}, threads = array<i64: 1, 1, 1>, arg_maps = {{m = #ptx.recipe<"f16 A dims (8) box (8)">}}', "", "ptx.ret"),
        "a recipe names something",
    ),
    *(
        Fault("ptx.recipe", _module(f'ptx.entry @k(%A: {_P}, %m: {_MAP} of "{text}") threads(32) {{\nptx.ret\n}}'), said)
        for text, said in (
            ("«f15» A dims (8) box (8)", "expected one of u8, u16"),
            ("f16 A dims (8, 8) strides (24) box «(8, 8)»", "dimension 1 has a stride of 24 bytes"),
            ("f16 A dims (8) box «(4)»", "the rows of the box (4) have 8 bytes"),
        )
    ),
    Fault("ptx.tensor_map", _module('tile.kernel @k«(%m: !ptx.tensor_map of "f16 A dims (8) box (8)")» threads(32) {\ntile.return\n}'), "part of its type"),
    Fault("gpu.module", "gpu.module «m» {\n}\n", "expected a name such as @kernel"),
    Fault("gpu.thread_id", tile_program("%0 = gpu.thread_id «w»"), "x"),
    Fault("gpu.block_id", tile_program("%0 = gpu.block_id «0»"), "x"),
    Fault("gpu.block_dim", ptx_program("%0 = gpu.block_dim «xy»"), "x"),
    Fault("gpu.grid_dim", ptx_program("%0 = gpu.grid_dim «%t»"), "x"),
    *(
        Fault(f"gpu.cluster_{name}", ptx_program(f"%0 = gpu.cluster_{name} «%t»"), "x")
        for name in ("block_id", "dim_blocks", "id", "dim")
    ),
]  # fmt: skip


def _type(of: str, *cases: tuple[str, str]) -> list[Fault]:
    return [Fault(of, f"{_alias(text)} = {text}\n", said) for text, said in cases]


def _alias(text: str) -> str:
    return "#a" if text.lstrip("«").startswith("#") else "!t"


TYPES = [
    *_type(
        "tile.tensor",
        ('!tile.tensor<f16, gmem, align<16>, "(4,«x»):(1,4)">', "E0101"),
        ('!tile.tensor<f16, gmem, align<16>, "(4,4):«(1)»">', "E0104"),
        ('!tile.tensor<f16, «vmem», align<16>, "4:1">', "gmem"),
        ('!tile.tensor<f16, gmem, «aligned»<16>, "4:1">', "'align'"),
        ('!tile.tensor<f16, gmem, align<«-»1>, "4:1">', "integer"),
        ('«!tile.tensor<f16, gmem, align<12>, "4:1">»', "the alignment is 12"),
        ('«!tile.tensor<f16, gmem, align<131072>, "4:1">»', "from 1 to 65536"),
        ('«!tile.tensor<f16, gmem, align<1>, "4:1">»', "less than one element of 2"),
        ('«!tile.tensor<i1, gmem, align<1>, "4:1">»', "predicates, i1, are in rmem only"),
        ('«!tile.tensor<i2, gmem, align<1>, "4:1">»', "integers or floats of whole bytes"),
        ('«!tile.tensor<index, gmem, align<8>, "4:1">»', "integers or floats of whole bytes"),
        ('«!tile.tensor<f16, gmem, align<16>, "4:-1">»', "negative strides"),
        ('«!tile.tensor<f16, gmem, align<16>, "(2,2):(1,281474976710656)">»', "at most 2^48"),
        ('«!tile.tensor<f16, gmem, align<16>, "S<1,0,1> o -8 o 8:1">»', "negative offset"),
        ('«!tile.tensor<f16, gmem, align<16>, "S<1,0,1> o 0 o (2,2):(1,1073741824)">»', "spans 2^31 bytes or more"),
        ('«!tile.tensor<f16, gmem, align<16>, "8:1 o 0 o 8:1">»', "not composed with another layout"),
        ('«!tile.tensor<si4, smem, align<16>, "S<1,0,3> o 0 o 64:1">»', "does not keep the 2 elements of a byte together"),
        ('«!tile.tensor<ui1, smem, align<16>, "S<1,3,3> o 4 o 64:1">»', "does not keep the 8 elements of a byte together"),
        ('«!tile.tensor<ui1, smem, align<16>, "S<1,3,3> o ?{div=4} o 64:1">»', "does not keep the 8 elements"),
    ),
    *_type(
        "tile.copy_atom",
        ("#tile.copy_atom<«\"UniversalCopy<uint256_t>\"», f16>", "E0302"),
        ('«#tile.copy_atom<"UniversalCopy<uint16_t>", f32>»', "E0303"),
        ('«#tile.copy_atom<"SM80_CP_ASYNC_CACHEGLOBAL<uint64_t>", f16>»', "E0304"),
        ('«#tile.copy_atom<"UniversalCopy<uint16_t>", index>»', "whole bytes"),
        ('«#tile.copy_atom<"AutoVectorizingCopy", i2>»', "whole bytes"),
    ),
    *_type(
        "tile.tiled_copy",
        ('!tile.tiled_copy<«f16», "8:1", "8">', "expected a copy atom"),
        ('!tile.tiled_copy<#tile.copy_atom<"DefaultCopy", f16>, "(8,«»", "8">', "E0101"),
        ('!tile.tiled_copy<#tile.copy_atom<"DefaultCopy", f16>, "(8,1):(1,0)", "«(8,-1)»">', "E0205"),
        ('«!tile.tiled_copy<#tile.copy_atom<"DefaultCopy", f16>, "S<1,0,1> o 0 o (8,1):(1,0)", "8">»', "plain layout"),
        ('«!tile.tiled_copy<#tile.copy_atom<"SM75_U32x4_LDSM_N", f16>, "(16,8):(8,1)", "128">»', "E0305"),
    ),
    *_type("ptx.ptr", ("!ptx.ptr<«param»>", "global"), ("!ptx.ptr «global»", "'<'")),
    *_type("ptx.space", ("#ptx.space<«hmem»>", "gmem")),
    *_type("cute.layout", ('#cute.layout<"(8,4):(1,8«"»>', "E0101")),
    *_type("cute.coord", ('#cute.coord<"(1,«:»2)">', "E0101")),
    *_type("cute.tile", ('#cute.tile<"[8:1«,»4]">', "E0101")),
]  # fmt: skip
