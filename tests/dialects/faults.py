# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: E501 - a fault and its message stand on one line
"""A program for every rule of our dialects that breaks it. `«...»` is the text that the message must point at."""

from dataclasses import dataclass

from tests.dialects.samples import ptx_program, run_program, tile_program

WIDE = '#tile.copy_atom<"UniversalCopy<uint128_t>", f16>'


@dataclass(frozen=True, slots=True)
class Fault:
    """A program with one fault: whose rule it breaks, the program, and part of the message (or its code)."""

    of: str
    text: str
    said: str


def tile_faults(of: str, *cases: tuple[str, str]) -> list[Fault]:
    """Faults in the body of a kernel at stage `cute`."""
    return [Fault(of, tile_program(body), said) for body, said in cases]


def ptx_faults(of: str, *cases: tuple[str, str]) -> list[Fault]:
    """Faults in the body of a kernel at stage `instr`."""
    return [Fault(of, ptx_program(body), said) for body, said in cases]


def _run(of: str, *cases: tuple[str, str]) -> list[Fault]:
    return [Fault(of, run_program(body), said) for body, said in cases]


def _generic(name: str, operands: str, properties: str, types: str) -> str:
    return f'%0 = «"{name}"»({operands}) <{{{properties}}}> : {types}'


def _ptr_add(within: str, operands: str) -> str:
    types = ", ".join(["!ptx.ptr<global>", *["i32" if o == "%x" else "index" for o in operands.split(", ")[1:]]])
    within = f'within = #cute.coord<"{within}">'
    return _generic("ptx.ptr_add", operands, within, f"({types}) -> !ptx.ptr<global>")


def _parts(threads: str) -> str:
    copy = f'%d = tile.tiled_copy {WIDE} thr "{threads}" val "(8,1):(1,1)"\n'
    return copy + "%p = «tile.partition_S» %d, %A, %t\n%v = tile.load %p((0, 0), 0, 0)"


_G = '!tile.tensor<f16, gmem, align<16>, "(64,32):(1,64)">'
_G1 = '!tile.tensor<f16, gmem, align<16>, "64:1">'
_PACKED = '%n = tile.alloc : !tile.tensor<i4, rmem, align<4>, "8:1">\n'

VIEWS = [
    *tile_faults(
        "tile.local_tile",
        ('tile.local_tile «%n», "(16,8)", (0, 0)', "%n is not defined before this use"),
        ('tile.local_tile «%t», "(16,8)", (0, 0)', "expected a tensor, got a value of type index"),
        ('%0 = tile.local_tile %A, «"(16,5)", (0, 0)»', "E0314"),
        ('%0 = tile.local_tile %A, «"(16,8,2)", (0, 0, 0)»', "E0202"),
        ('%0 = tile.local_tile %A, "(16,«x»)", (0, 0)', "E0101"),
        ('%0 = tile.local_tile %A, «"(?,?)", (0, 0)»', "E0207"),
        ('%0 = tile.local_tile %A, «"(16,())", (0, 0)»', "E0213"),
        ('%0 = tile.local_tile %A, «"(16,8)", (0, 0) proj "(_,_)"»', "E0213"),
        ('%0 = tile.local_tile %A, «"(16,8)", (4, 0)»', "E0215"),
        ('%0 = tile.local_tile %A, «"(16,8)", (0, 4) ragged»', "E0215"),
        ('%0 = tile.slice %A, «(_, 32)»', "E0215"),
        ("%0 = «tile.load» %A(64, 0)", "E0215"),
        ('%0 = tile.zipped_divide %A, «"[?:1;8]"»', "E0207"),
        ('%0 = tile.composition %A, «"()"»', "E0213"),
        ('%0 = tile.local_tile %A, "(16,8)", (0, «-»1)', "coordinate"),
        ('%0 = tile.local_tile %A, «"(16,8)", (0, 0, 0)»', "E020"),
        ('%0 = tile.local_tile %A, «"(16,4,8)", (0, 0) proj "(1,_,1)"»', "E020"),
        ('%0 = tile.local_tile %A, "(16,8)", (0, 0) : «i32»', "expected a tensor type, got i32"),
        ('%0 = «tile.local_tile» %A, "(16,8)", (0, 0) : !tile.tensor<f16, gmem, align<16>, "(8,16):(1,64)">',
         'the result is !tile.tensor<f16, gmem, align<16>, "(16,8):(1,64)">'),
        ('%0 = tile.local_tile %A, "(16,8)", «x»', "'('"),
        (_generic("tile.local_tile", "%A, %t", 'tiler = #cute.tile<"(16,8)">, coord = #cute.coord<"(?,?)">',
                  f"({_G}, index) -> {_G}"), "the coordinate names 2 operands, not 1"),
        (_generic("tile.local_tile", "%A", 'tiler = #cute.tile<"(16,5)">, coord = #cute.coord<"(0,0)">',
                  f"({_G}) -> {_G}"), "E0314"),
    ),
    *tile_faults(
        "tile.domain_offset",
        ("%0 = tile.domain_offset %A, «(64, 0)»", "E0215"),
        ("%0 = tile.domain_offset %A, «(0, 0, 0)»", "E020"),
        (_generic("tile.domain_offset", "%A, %t", 'coord = #cute.coord<"(0,0)">', f"({_G}, index) -> {_G}"),
         "the coordinate names 0 operands, not 1"),
    ),
    *tile_faults(
        "tile.slice",
        ("%0 = tile.slice %A, «(_, 0, 0)»", "E020"),
        ("%0 = tile.slice %A, «0»", "'('"),
        ("%0 = tile.slice %A, (_, «%q»)", "%q is used but never defined"),
        ("%0 = tile.slice %A, (_, " + "(" * 32 + "«0»" + ")" * 32 + ")", "nests at most 32 deep"),
        (_generic("tile.slice", "%A, %t", 'coord = #cute.coord<"(_,0)">', f"({_G}, index) -> {_G1}"),
         "the coordinate names 0 operands, not 1"),
    ),
    *tile_faults(
        "tile.logical_divide",
        ('%0 = tile.logical_divide %A, «"(5,8)"»', "E0314"),
        ('%0 = «tile.logical_divide» %A, "(4,8)" : ' + _G, "the result is"),
    ),
    *tile_faults(
        "tile.zipped_divide",
        ('%0 = tile.zipped_divide %A, "(4«;»8)"', "E0101"),
        ('%0 = «tile.zipped_divide» %A, "(4,8)" : ' + _G, "the result is"),
    ),
    *tile_faults(
        "tile.tiled_divide",
        ('%0 = tile.tiled_divide %A, «"(4,8,1)"»', "E0202"),
        ('%0 = «tile.tiled_divide» %A, "(4,8)" : ' + _G, "the result is"),
    ),
    *tile_faults(
        "tile.flat_divide",
        ('%0 = tile.flat_divide %A, «"(3,8)"»', "E0314"),
        ('%0 = «tile.flat_divide» %A, "(4,8)" : ' + _G, "the result is"),
    ),
    *tile_faults(
        "tile.composition",
        ('%v = tile.view %A : !tile.tensor<f16, gmem, align<16>, "(4,6):(1,8)">\n%0 = tile.composition %v, «"6:3"»', "E0203"),
        ('%0 = «tile.composition» %A, "(32,64):(64,1)" : ' + _G, "the result is"),
    ),
    *tile_faults("tile.coalesce", ("%0 = «tile.coalesce» %A : " + _G, "the result is")),
    *tile_faults(
        "tile.select",
        ("%0 = tile.select %A, «[1, 2]»", "E0208"),
        ("%0 = tile.select %A, «1»", "'['"),
        ("%0 = «tile.select» %A, [1, 0] : " + _G, "the result is"),
    ),
    *tile_faults(
        "tile.group_modes",
        ("%0 = tile.group_modes %A, «[0]»", "takes the first mode and the one after the last, not 1 number"),
        ("%0 = tile.group_modes %A, «[1, 5]»", "E0208"),
        (_generic("tile.group_modes", "%A", "modes = array<i64: 0, 1, 2>", f"({_G}) -> {_G}"),
         "takes the first mode and the one after the last, not 3 numbers"),
        ("%0 = «tile.group_modes» %A, [0, 2] : " + _G, "the result is"),
    ),
]  # fmt: skip

COPIES = [
    *tile_faults(
        "tile.tiled_copy",
        ("%0 = tile.tiled_copy «f16» thr \"8:1\" val \"1:0\"", "expected a copy atom"),
        (f'%0 = tile.tiled_copy {WIDE} «thv» "8:1" val "1:0"', 'expected thr "..." val "..."'),
        (f'%0 = tile.tiled_copy {WIDE} thr "(8,4):(1,8)" «var» "8:1"', "'val'"),
        (f'%0 = tile.tiled_copy {WIDE} thr "(8,«a»):(1,8)" val "8:1"', "E0101"),
        (f'%0 = tile.tiled_copy «{WIDE} tv "(32,8):(8,1)" tiler "()"»', "E0213"),
        (f'%0 = tile.tiled_copy «{WIDE} tv "(32,8):(8,1)" tiler "(?,16)"»', "E0207"),
        (f'%0 = tile.tiled_copy {WIDE} thr «"S<1,0,1> o 0 o 8:1"» val "8:1"', "plain layout, without a swizzle"),
        (f'%0 = tile.tiled_copy «{WIDE} thr "(8,4):(1,8)" val "4:1"»', "E03"),
        (f'%0 = tile.tiled_copy «{WIDE} tv "((16,8),4):((64,1),8)" tiler "(8,128)"»', "E03"),
        ('%0 = tile.tiled_copy «#tile.copy_atom<"SM75_U32x4_LDSM_N", f16> thr "16:1" val "8:1"»', "E0305"),
        (f'%0 = «tile.tiled_copy» {WIDE} thr "(8,4):(1,8)" val "(8,1):(1,1)" : !tile.tiled_copy<{WIDE}, "(32,8):(8,1)", "(8,32)">',
         "the result is !tile.tiled_copy"),
        (_generic("tile.tiled_copy", "", f"atom = {WIDE}", f'() -> !tile.tiled_copy<{WIDE}, "(32,8):(8,1)", "(64,4)">'),
         "a tiled copy is made in one way"),
        (_generic("tile.tiled_copy", "", f'atom = {WIDE}, thr = #cute.layout<"S<1,0,1> o 0 o 8:1">, val = #cute.layout<"8:1">',
                  f'() -> !tile.tiled_copy<{WIDE}, "(32,8):(8,1)", "(64,4)">'), "plain ones, without a swizzle"),
        (_generic("tile.tiled_copy", "", f'atom = {WIDE}, thr = #cute.layout<"8:1">, val = #cute.layout<"4:1">',
                  f'() -> !tile.tiled_copy<{WIDE}, "(32,8):(8,1)", "(64,4)">'), "E03"),
    ),
    *tile_faults(
        "tile.partition_S",
        ("%0 = tile.partition_S «%A», %A, %t", "expected a tiled copy, got a value of type !tile.tensor"),
        ("%0 = tile.partition_S %c, «%t», %t", "expected a tensor"),
        ("%0 = «tile.partition_S» %c, %A, %t : " + _G, "the result is"),
        ("%0 = tile.partition_S %c, %A, «:» " + _G, "expected a value such as %a"),
        ('%v = tile.view %A : !tile.tensor<f16, gmem, align<16>, "64:1">\n%0 = tile.partition_S «%c, %v, %t»', "E0307"),
        ('%v = tile.view %A : !tile.tensor<f16, gmem, align<16>, "(64,6):(1,64)">\n%0 = tile.partition_S «%c, %v, %t»', "E0314"),
        (_parts("(8,2):(1,8)"), "16 threads share the tensor, but each of the 32"),
        (_parts("(8,8):(1,8)"), "64 threads share the tensor, but the block has 32"),
        (_generic("tile.partition_S", "%c, %A", "", f'(!tile.tiled_copy<{WIDE}, "(32,8):(8,1)", "(64,4)">, {_G}) -> {_G}'),
         "one thread index"),
    ),
    *tile_faults(
        "tile.partition_D",
        ("%0 = tile.partition_D %c, %s«\n»tile.return", "','"),
        ("%0 = «tile.partition_D» %c, %s, %t : " + _G, "the result is"),
    ),
    *tile_faults(
        "tile.copy",
        ("tile.copy «f16» %A, %s", "expected a copy atom or an operand"),
        ("tile.copy «%A»", "expected a source and a destination"),
        ("tile.copy %A, «%n»", "%n is not defined before this use"),
        ('%v = tile.alloc : !tile.tensor<f32, smem, align<16>, "(64,32):(1,64)">\n«tile.copy» %A, %v', "source's elements are f16, the destination's f32, and a copy does not convert"),
        ('%v = tile.alloc : !tile.tensor<f16, smem, align<16>, "64:1">\n«tile.copy» %A, %v', "the source has rank 2"),
        ('%v = tile.alloc : !tile.tensor<f16, smem, align<16>, "(64,16):(1,64)">\n«tile.copy» %A, %v', "mode 1 has 32 elements"),
        (f"«tile.copy» {WIDE} %A, %s", "E0310"),
        (f'«"tile.copy"»(%c, %A, %s) <{{atom = {WIDE}, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0>}}>'
         f' : (!tile.tiled_copy<{WIDE}, "(32,8):(8,1)", "(64,4)">, {_G}, !tile.tensor<f16, smem, align<128>, "(64,32):(1,64)">) -> ()',
         "the atom is given twice"),
        ('%a = tile.view %A : !tile.tensor<f16, gmem, align<16>, "(8,4):(2,16)">\n'
         '%b = tile.view %s : !tile.tensor<f16, smem, align<16>, "(8,4):(1,8)">\n'
         f"«tile.copy» {WIDE} %a, %b", "E0311"),
        ('%a = tile.view %A : !tile.tensor<f16, gmem, align<8>, "(8,4):(1,8)">\n'
         '%b = tile.view %s : !tile.tensor<f16, smem, align<16>, "(8,4):(1,8)">\n'
         f"«tile.copy» {WIDE} %a, %b", "E0312"),
        ('%a = tile.view %A : !tile.tensor<f16, gmem, align<16>, "(8,4):(1,8)">\n'
         '%b = tile.view %s : !tile.tensor<f16, smem, align<16>, "((8,2),4):((1,8),16)">\n'
         f"«tile.copy» {WIDE} %a, %b", "1 times in mode 0, the destination 2 times"),
        ('%a = tile.view %s : !tile.tensor<f16, smem, align<16>, "(8,4):(1,8)">\n'
         '«tile.copy» #tile.copy_atom<"SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>", f16> %a, %a', "E0309"),
    ),
    *tile_faults(
        "tile.atom_call",
        ("tile.atom_call «f16» %A, %s", "expected a copy atom"),
        (f"tile.atom_call {WIDE} %A, %s count«\n»tile.return", "expected a value such as %a"),
        (f"tile.atom_call {WIDE} %A«\n»tile.return", "','"),
        (f"«tile.atom_call» {WIDE} %A, %r", "E0310"),
        ('%v = tile.view %A : !tile.tensor<f16, gmem, align<16>, "8:2">\n' f"«tile.atom_call» {WIDE} %v, %r", "E0311"),
        ('%v = tile.view %A : !tile.tensor<f16, gmem, align<4>, "8:1">\n' f"«tile.atom_call» {WIDE} %v, %r", "E0312"),
        ('%v = tile.view %A : !tile.tensor<f16, gmem, align<16>, "8:1">\n'
         '«tile.atom_call» #tile.copy_atom<"UniversalCopy<uint128_t>", bf16> %v, %r', "E0303"),
        (f"%p = ptx.smem.alloc 64 align 16\n«tile.atom_call» {WIDE} %p, %r", "two tensors or two pointers"),
    ),
]  # fmt: skip

MEMORY = [
    *tile_faults(
        "tile.alloc",
        ("%0 = «tile.alloc» : " + _G, "allocates only in smem and rmem"),
        ('%0 = tile.alloc : «!tile.tensor<f16, rmem, align<16>, "S<1,0,1> o 0 o 8:1">»', "a fragment in rmem has a plain layout"),
        ('%0 = «tile.alloc» : !tile.tensor<f16, smem, align<16>, "S<1,0,1> o ?{div=2} o 8:1">', "begins at an unknown offset"),
        ('%0 = «tile.alloc» : !tile.tensor<i8, rmem, align<16>, "65537:1">', "in rmem at most 65536"),
        ('%0 = «tile.alloc» : !tile.tensor<f64, smem, align<16>, "(512,257):(1,512)">', "in smem at most 1048576"),
    ),
    *tile_faults(
        "tile.peer",
        ("%0 = tile.peer «%A, %t»", "a peer has no tensor in gmem that other blocks can access"),
        ("%0 = arith.constant 1.0 : f32\n%1 = «tile.peer» %s, %0", "takes no f32"),
    ),
    *tile_faults(
        "tile.choose",
        ("%0 = tile.choose %t of «%s, %A»", "one of several tensors has the type of each"),
        ("%0 = tile.choose %t of %s, «%t»", "expected a tensor, got a value of type index"),
        ("%0 = tile.choose %t of %s,« »", "expected"),
        ('%0 = «"tile.choose"»(%t) : (index) -> !g', "there are no tensors to choose from"),
    ),
    *tile_faults(
        "tile.tensor_at",
        ('%0 = tile.ptr %A(0, 0)\n%1 = «tile.tensor_at» %0 : !tile.tensor<f16, smem, align<16>, "1:0">', "begins at a !ptx.ptr<shared>"),
        ('%0 = tile.ptr %A(0, 0)\n%1 = «tile.tensor_at» %0 : !tile.tensor<f16, rmem, align<16>, "1:0">', "gmem and smem have addresses"),
        ('%0 = tile.ptr %A(0, 0)\n%1 = «tile.tensor_at» %0 : !tile.tensor<f16, gmem, align<16>, "?:1">', "use tile.make_tensor"),
    ),
    *tile_faults(
        "tile.alias",
        ('%v = tile.slice %s, (_, 0)\n%0 = «tile.alias» %v at 0 : !tile.tensor<f16, smem, align<16>, "8:1">', "not from a view"),
        ('%0 = «tile.alias» %s at 0 : !tile.tensor<f16, rmem, align<16>, "8:1">', "the memory is in smem, not in rmem"),
        ('%0 = «tile.alias» %s at 0 : !tile.tensor<f16, smem, align<16>, "S<1,0,1> o ?{div=2} o 8:1">', "begins at an unknown offset"),
        ('%0 = «tile.alias» %s at 4096 : !tile.tensor<f16, smem, align<2>, "1:0">', "bytes 4096 to 4098 of memory that has 4096"),
        ('%0 = «tile.alias» %s at 4032 : !tile.tensor<f16, smem, align<16>, "S<3,3,3> o 0 o 64:1">', "bytes 4032 to 4160"),
        ('%0 = «tile.alias» %s at -2 : !tile.tensor<f16, smem, align<2>, "1:0">', "bytes -2 to 0"),
        ('%0 = «tile.alias» %s at 8 : !tile.tensor<f16, smem, align<16>, "8:1">', "the alignment is 8, not 16"),
        ('%0 = tile.alias %s «:» !tile.tensor<f16, smem, align<16>, "8:1">', "'at'"),
    ),
    *tile_faults("tile.print_tensor", (f'{_PACKED}«tile.print_tensor» "n" %n', "no address of its own")),
    *tile_faults("tile.fill", (f"{_PACKED}%v = arith.constant 1 : i4\n«tile.fill» %n, %v", "no address of its own")),
    *tile_faults(
        "tile.rasterize",
        ("%0:2 = «tile.rasterize» %w in (4) group 8", "the grid has two sizes"),
        ("%0:2 = «tile.rasterize» %w in (4, (2, 2)) group 8", "the grid has two sizes"),
        ("%0:2 = «tile.rasterize» %w in (4, 0) group 8", "at least one row and one column"),
        ("%0:2 = «tile.rasterize» %w in (%t, 4) group 0", "a group has 1 to 65536 rows, not 0"),
        ('%0:2 = «"tile.rasterize"»(%w) <{grid = #cute.coord<"(?,4)">, group = 8 : i64}> : (index) -> (index, index)',
         "the grid names 1 operands, not 0"),
    ),
    *tile_faults(
        "tile.load",
        ("%0 = «tile.load» %A(_, 0)", "an element's coordinate has no '_'"),
        (f"{_PACKED}%0 = «tile.load» %n(0)", "no address of its own"),
        (f"{_PACKED}%0 = tile.logical_divide %n, \"4\"\n%1 = tile.slice %0, «(1, _)»", "within a byte"),
        ("%0 = «tile.load» %A(0, 0, 0)", "E020"),
        ("%0 = tile.load «%t»(0)", "expected a tensor"),
        ("%0 = tile.load %A «0»", "'('"),
        (_generic("tile.load", "%A", 'coord = #cute.coord<"(0,0)">', f"({_G}) -> f32"), "elements are f16, the value is f32"),
        (_generic("tile.load", "%A", 'coord = #cute.coord<"(?,0)">', f"({_G}) -> f16"), "names 1 operands, not 0"),
    ),
    *tile_faults(
        "tile.store",
        ("«tile.store» %x, %A(0, 0)", "elements are f16, the value is i32"),
        ("tile.store «%n», %A(0, 0)", "%n is not defined before this use"),
        ("tile.store %x, «%x»(0)", "expected a tensor"),
    ),
    *tile_faults(
        "tile.ptr",
        ("%0 = «tile.ptr» %r(0)", "a fragment is registers, which have no address"),
        (_generic("tile.ptr", "%A", 'coord = #cute.coord<"(0,0)">', f"({_G}) -> !ptx.ptr<shared>"), "the result is !ptx.ptr<global>"),
    ),
    *tile_faults(
        "tile.fill",
        ("«tile.fill» %r, %x", "elements are f16, the value is i32"),
        ("tile.fill «%x», %x", "expected a tensor"),
        ("tile.fill %r«\n»tile.return", "','"),
    ),
    *tile_faults(
        "tile.map",
        ("«tile.map» %A, %r (%a: f16) {\ntile.yield %a : f16\n}", "the destination has rank 2, source 0 rank 1"),
        ('%v = tile.slice %A, (_, 0)\n«tile.map» %r, %v (%a: f16) {\ntile.yield %a : f16\n}',
         "mode 0 has 8 elements in the destination, 64 in source 0"),
        ("«tile.map» %r, %r (%a: f32) {\n%h = arith.truncf %a : f32 to f16\ntile.yield %h : f16\n}",
         "the body takes f16, and f16 for the old element if it is used; not f32"),
        ("«tile.map» %r () {\n%h = arith.constant 0.0 : f32\ntile.yield %h : f32\n}", "the body yields f32, but the elements are f16"),
        ("«tile.map» %r () {\ntile.return\n}", "the body must end in tile.yield"),
        ("tile.map «%x» () {\ntile.yield %x : i32\n}", "expected a tensor"),
        ("tile.map %r «{»\n}", "'('"),
    ),
    *tile_faults(
        "tile.yield",
        ("tile.map %r () {\ntile.yield «f16»\n}", "expected a value such as %a, found 'f16'"),
    ),
    *tile_faults("tile.print", ('«tile.print» "\\00" %A', "NUL"), ("tile.print «%A»", "text in quotes")),
    *tile_faults("tile.print_tensor", (f'«tile.print_tensor» "{"x" * 1025}" %A', "1024"), ('tile.print_tensor "a" «%x»', "expected a tensor")),
    *tile_faults(
        "tile.crd2idx",
        ('%0 = «tile.crd2idx» (%t, 0) in "8:1"', "deeper than the shape"),
        ('%0 = «tile.crd2idx» (%t) in "S<1,0,1> o 0 o 8:1"', "a plain one, without a swizzle"),
        ('%0 = tile.crd2idx (%t) in "(8,2):(1«"»', "E0101"),
        (_generic("tile.crd2idx", "", 'coord = #cute.coord<"?">, layout = #cute.layout<"8:1">, operandSegmentSizes = array<i32: 0, 0>',
                  "() -> index"), "names 1 operands, not 0"),
    ),
    *tile_faults(
        "tile.view",
        ('%0 = «tile.view» %A at %t : !tile.tensor<f32, gmem, align<16>, "8:1">', "a view keeps element type and space"),
        ('%0 = «tile.view» %A : !tile.tensor<f16, smem, align<16>, "8:1">', "a view keeps element type and space"),
        ('%0 = «tile.view» %A : !tile.tensor<f16, gmem, align<16>, "S<1,0,1> o 0 o 8:1">', "a view keeps the swizzle"),
        ('%0 = «tile.view» %A : !tile.tensor<f16, gmem, align<32>, "8:1">', "promises alignment 32"),
        ("%0 = tile.view %A«\n»tile.return", "':'"),
        ("%0 = tile.view «%t» : " + _G, "expected a tensor"),
        ("%0 = tile.view %A at «:» " + _G, "expected a value such as %a"),
        ("%0 = tile.view %A : «f16»", "expected a tensor type, got f16"),
    ),
]  # fmt: skip

PTX = [
    *ptx_faults("ptx.sreg", ('%0 = «ptx.sreg» "tid.w"', "unknown special register 'tid.w'; known: tid.x")),
    *ptx_faults(
        "ptx.ptr_add",
        ("%0 = «ptx.ptr_add» %A, %x : !ptx.ptr<global>, i32 -> !ptx.ptr<shared>", "the same state space"),
        ("%0 = «ptx.ptr_add» %A, %h : !ptx.ptr<global>, f16 -> !ptx.ptr<global>", "the operation takes no f16"),
        ("%0 = ptx.ptr_add %A, %x within (%x «,» 8) : !ptx.ptr<global>, i32 -> !ptx.ptr<global>", "'<'"),
        (_ptr_add("?", "%A, %x, %x"), "pairs of an integer and an extent"),
        (_ptr_add("((?,8))", "%A, %x"), "static or has an operand"),
        (_ptr_add("((?,?))", "%A, %x, %x, %t"), "have one type"),
    ),
    *ptx_faults(
        "ptx.inttoptr",
        ("%0 = «ptx.inttoptr» %x align 4 : i32 -> !ptx.ptr<global>", "the number of a !ptx.ptr<global> is an i64, not i32"),
        ("%0 = «ptx.inttoptr» %x align 4 : i32 -> !ptx.ptr<local>", "the number of a !ptx.ptr<local> is an i64"),
        ("%0 = «ptx.inttoptr» %v align 12 : i64 -> !ptx.ptr<global>", "a power of two"),
    ),
    *ptx_faults("ptx.ptrtoint", ("%0 = «ptx.ptrtoint» %s : !ptx.ptr<shared> -> i64", "is an i32, not i64")),
    *ptx_faults(
        "ptx.ld",
        ("%0 = «ptx.ld» %A align 16 : !ptx.ptr<global> -> index", "a value of type index cannot be loaded"),
        ("%0 = «ptx.ld» %A align 16 : !ptx.ptr<global> -> vector<2x2xi32>", "1-D vectors"),
        ("%0 = «ptx.ld» %A align 16 : !ptx.ptr<global> -> vector<3xi32>", "the access has 12 bytes"),
        ("%0 = «ptx.ld» %A align 64 : !ptx.ptr<global> -> vector<16xi32>", "the access has 64 bytes"),
        ("%0 = «ptx.ld» %A align 3 : !ptx.ptr<global> -> i8", "the alignment is 3; it must be a positive power of two"),
        ("%0 = «ptx.ld» %A align 4 : !ptx.ptr<global> -> i64", "an access of 8 bytes needs an address aligned to 8 bytes, not to 4"),
    ),
    *ptx_faults("ptx.st", ("«ptx.st» %v, %A align 4 : i64, !ptx.ptr<global>", "an access of 8 bytes")),
    *ptx_faults(
        "ptx.createpolicy",
        ('%0 = «ptx.createpolicy» "L1::evict_last"', "'L1::evict_last' is not a cache hint of a policy"),
        ('%0 = «ptx.createpolicy» "L2::evict_last" fraction 1.500000e+00', "the fraction is 1.5; it must be greater than 0"),
        ('%0 = «ptx.ld» %s policy %v align 4 : !ptx.ptr<shared> -> i32', "a cache hint is for global memory"),
    ),
    *ptx_faults("ptx.local.alloc", ("%0 = «ptx.local.alloc» 0 align 4", "an allocation of 0 bytes")),
    *ptx_faults("ptx.smem.alloc", ("%0 = «ptx.smem.alloc» 16 align 12", "the alignment is 12")),
    *ptx_faults(
        "ptx.smem.addr",
        ("%0 = «ptx.smem.addr» -4", "must not be negative"),
        ("%0 = «ptx.smem.addr» 0 bytes 0", "it must have at least 1"),
    ),
    *ptx_faults(
        "ptx.cp.async",
        ('«ptx.cp.async» "cs" 16 %s, %A', 'the cache operator is "cs"'),
        ('«ptx.cp.async» "cg" 8 %s, %A', "cp.async.cg copies 16 bytes, not 8"),
        ('«ptx.cp.async» "ca" 2 %s, %A', "cp.async.ca copies 4 or 8 or 16 bytes, not 2"),
        ('ptx.cp.async "ca" 16 «%A», %s', "of type !ptx.ptr<global> elsewhere, not !ptx.ptr<shared>"),
    ),
    *ptx_faults("ptx.cp.async.wait_group", ("«ptx.cp.async.wait_group» -1", "it must be 0 or more")),
    *ptx_faults(
        "ptx.ldmatrix",
        ("%0 = «ptx.ldmatrix» x 3 %s : vector<3xi32>", "moves 1, 2, 4 matrices of this shape, not 3"),
        ("%0 = «ptx.ldmatrix» x 4 %s : vector<2xi32>", "the registers of x4 are vector<4xi32>"),
    ),
    *ptx_faults(
        "ptx.bar.warp.sync",
        ("«ptx.bar.warp.sync» 0", "at least one of them set"),
        ("«ptx.bar.warp.sync» 4294967296", "32 lanes"),
    ),
    *ptx_faults(
        "ptx.printf",
        ('«ptx.printf» "%d"() : ', "the format has 1 conversions, but 0 values follow it"),
        ('«ptx.printf» "%s"(%A) : !ptx.ptr<global>', "unknown conversion '%s'"),
        ('«ptx.printf» "%1000d"(%x) : i32', "unknown conversion '%100'"),
        ('«ptx.printf» "%"(%x) : i32', "unknown conversion '%'"),
        ('«ptx.printf» "%n"(%A) : !ptx.ptr<global>', "unknown conversion"),
        ('«ptx.printf» "\\00%d"(%x) : i32', "NUL"),
        ('«ptx.printf» "%f"(%x) : i32', "conversion %f does not fit value 0 of type i32"),
        ('«ptx.printf» "%d %d"(%x, %v) : i32, i64', "conversion %d does not fit value 1 of type i64"),
        ('«ptx.printf» "%d"(%A) : !ptx.ptr<global>', "conversion %d does not fit"),
        ('«ptx.printf» "%p"(%x) : i32', "conversion %p does not fit"),
    ),
]  # fmt: skip

_ARGS = '  run.arg "A" : !g = "0"\n  run.arg "n" : i32 = "1"\n'

RUN = [
    Fault(
        "run.launch",
        run_program(f"«run.launch» @m::@k grid(4, 3) {{\n{_ARGS}}}").replace("threads(32)", "threads(32) cluster(2, 2)"),
        "the grid does not consist of whole clusters: 3 blocks along y, 2 in each [E3105]",
    ),
    *_run(
        "run.launch",
        ("run.launch «\"k\"» grid(1) {\n}", "expected the kernel to launch"),
        (f"«run.launch» @m::@q grid(1) {{\n{_ARGS}}}", "there is no kernel @m::@q"),
        (f"«run.launch» @m::@k grid(0) {{\n{_ARGS}}}", "the grid is (0, 1, 1)"),
        (f"«run.launch» @m::@k grid(1, 65536) {{\n{_ARGS}}}", "at most"),
        (f"«run.launch» @m::@k grid(1) block(2048) {{\n{_ARGS}}}", "the block is (2048), but the kernel has"),
        (f"«run.launch» @m::@k grid(1) block(64) {{\n{_ARGS}}}", "the block is (64), but the kernel has threads(32)"),
        (f"run.launch @m::@k grid«(1, 2, 3, 4)» {{\n{_ARGS}}}", "one to three sizes"),
        (f"run.launch @m::@k «{{»\n{_ARGS}}}", "'grid'"),
        ('«run.launch» @m::@k grid(1) {\n  run.arg "A" : !g = "0"\n}', "the kernel's argument 'n' is not given"),
        (f'«run.launch» @m::@k grid(1) {{\n{_ARGS}  run.arg "o" : i32 = "1"\n}}', "the kernel has no argument 'o'; it has A, n"),
        (f'«run.launch» @m::@k grid(1) {{\n{_ARGS}  run.arg "n" : i32 = "2"\n}}', "argument 'n' is given twice"),
        ('«run.launch» @m::@k grid(1) {\n  run.arg "A" : !g = "0"\n  run.arg "n" : i64 = "1"\n}', "but the kernel takes i32"),
        ('«run.launch» @m::@k grid(1) {\n  run.arg "A" : !tile.tensor<f32, gmem, align<16>, "64:1"> = "0"\n'
         '  run.arg "n" : i32 = "1"\n}', "but the kernel takes !tile.tensor"),
    ),
    *_run(
        "run.arg",
        (f'run.launch @m::@k grid(1) {{\n{_ARGS}  «run.arg» "B" : !tile.tensor<f32, smem, align<16>, "32:1"> = "0"\n}}', "must be in gmem"),
        (f'run.launch @m::@k grid(1) {{\n{_ARGS}  «run.arg» "B" : index = "0"\n}}', "not index"),
        (f'run.launch @m::@k grid(1) {{\n{_ARGS}  «run.arg» "B" : !tile.tensor<f32, gmem, align<16>, "S<1,0,1> o ? o 32:1"> = "0"\n}}',
         "unknown offset"),
        ('«run.arg» "A" : i32 = "0"', "it may stand only within 'run.launch'"),
    ),
    *_run(
        "run.check",
        (f'run.launch @m::@k grid(1) {{\n{_ARGS}  «run.check» "A == 0" rtol -1.0\n}}', "a tolerance must be a finite number, 0 or more"),
        (f'run.launch @m::@k grid(1) {{\n{_ARGS}  «"run.check"»() <{{expr = "A", atol = 0x7FF0000000000000 : f64}}> : () -> ()\n}}',
         "a tolerance must be a finite number"),
        (f'run.launch @m::@k grid(1) {{\n{_ARGS}  run.check "A == 0" rtol «x»\n}}', "expected"),
    ),
]  # fmt: skip
