# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: E501 - a fault and its message stand on one line
"""A program for every rule of run-time extents and strides, partitions by threads and recasts that breaks it."""

from tests.dialects.faults import Fault, tile_faults
from tests.dialects.samples import run_program

_G = '!tile.tensor<f16, gmem, align<16>, "(64,32):(1,64)">'
_D = '!tile.tensor<f16, gmem, align<16>, "?:?">'
_MAKE = f'%d = tile.make_tensor %A, "?:?" (%t, %w) : {_D}\n'


def _run(of: str, kernel: str, *cases: tuple[str, str]) -> list[Fault]:
    """Launches of a kernel that takes a tensor %A of this type."""
    program = run_program("").replace("%A: !g", f"%A: {kernel}")
    arg = 'run.launch @m::@k grid(1) {{\nrun.arg "A" : {0} = "0"\nrun.arg "n" : i32 = "0"\n}}\n'
    return [Fault(of, program + f"«{arg[:10]}»{arg[10:]}".format(given), said) for given, said in cases]


def _entry(args: str, said: str) -> Fault:
    return Fault("ptx.entry", f"gpu.module @m {{\n«ptx.entry» @k({args}) threads(32) {{\nptx.ret\n}}\n}}\n", said)


def _types(*cases: tuple[str, str]) -> list[Fault]:
    return [Fault("tile.tensor", f"!t = «{type}»\n", said) for type, said in cases]


RUN_TIME = [
    *_types(
        ('!tile.tensor<f16, gmem, align<16>, "S<2,3,3> o 0 o (8,?):(?,1)">', "a swizzled tensor needs static extents"),
        ('!tile.tensor<f16, gmem, align<16>, "(?{i16},4):(1,4)">', "have 32 or 64 bits"),
        ('!tile.tensor<f16, gmem, align<16>, "(8,4):(1@0,1@1)">', "has the strides of coordinates"),
    ),
    *tile_faults(
        "tile.alloc",
        ('%0 = «tile.alloc» : !tile.tensor<f16, smem, align<16>, "(?,4):(1,4)">', "allocates memory of static layouts"),
    ),
    *tile_faults(
        "tile.local_tile",
        (_MAKE + '%0 = tile.local_tile %d, «"(16)", (0)»', "E0314"),
        ('%e = tile.make_tensor %A, "?{div=8}:1" (%t)\n%0 = tile.local_tile %e, «"[4:4]", (0)»', "E0314"),
    ),
    *tile_faults(
        "tile.outer_partition",
        ('%0 = tile.outer_partition %A, «"(16,5)", (0, 0)»', "E0314"),
        ('%0 = tile.outer_partition %A, «"(16,8)", (0, 0, 0)»', "E0202"),
        ('%0 = tile.outer_partition %A, «"(?,8)", (0, 0)»', "E0207"),
        ('%0 = tile.outer_partition %A, «"(16,8)", (16, 0)»', "E0215"),
        ('%0 = tile.outer_partition %A, «"(16,8)", 128»', "E0215"),
        ('%0 = tile.local_tile %A, «"(16,8)", 16»', "E0215"),
        (f'%0 = «"tile.outer_partition"»(%A) <{{tiler = #cute.tile<"(16,8)">, coord = #cute.coord<"(?,0)">}}> : ({_G}) -> {_G}',
         "the coordinate names 1 operands, not 0"),
    ),
    *tile_faults(
        "tile.local_partition",
        ('%0 = tile.local_partition %A, «"S<1,0,1> o 0 o 8:1"», %t', "expected a plain layout"),
        ('%0 = tile.local_partition %A, «"(7,4):(1,7)", %t»', "E0314"),
        ('%0 = tile.local_partition %A, «"(?,4):(1,?)", %t»', "E0207"),
        (f'%0 = «"tile.local_partition"»(%A) <{{threads = #cute.layout<"8:1">}}> : ({_G}) -> {_G}', "needs one thread index"),
        (f'%0 = «"tile.local_partition"»(%A, %t) <{{threads = #cute.layout<"S<1,0,1> o 0 o 8:1">}}> : ({_G}, index) -> {_G}',
         "a plain one, without a swizzle"),
    ),
    *tile_faults("tile.fill", (_MAKE + "%h = arith.constant 0.0 : f16\n«tile.fill» %d, %h", "E0207")),
    *tile_faults("tile.map", (_MAKE + "«tile.map» %d (%o: f16) {\ntile.yield %o : f16\n}", "E0207")),
    *tile_faults(
        "tile.recast",
        ("%0 = tile.recast «%A, i1»", "E0213"),
        ("%0 = tile.recast «%A, index»", "E0213"),
        ('%v = tile.view %A : !tile.tensor<f16, gmem, align<2>, "8:1">\n%0 = tile.recast «%v, i32»', "E0312"),
        ('%v = tile.view %A : !tile.tensor<f16, gmem, align<8>, "(8,3):(1,9)">\n%0 = tile.recast «%v, i32»', "E0203"),
        ('%v = tile.view %A : !tile.tensor<f16, gmem, align<8>, "7:1">\n%0 = tile.recast «%v, i32»', "E0203"),
        ('%q = tile.alloc : !tile.tensor<f16, smem, align<8>, "S<1,1,1> o 1 o 8:1">\n%0 = tile.recast «%q, i32»', "E0203"),
        (_MAKE + "%0 = tile.recast «%d, i8»", "E0212"),
        (f"%0 = «tile.recast» %A, i32 : {_G}", "the result is"),
        (f"%0 = «tile.recast» %A, i1 : {_G}", "E0213"),
    ),
    *tile_faults(
        "tile.make_tensor",
        ('%0 = tile.make_tensor %A, «"S<1,0,1> o 0 o 8:1"»', "E0211"),
        (f'%0 = «tile.make_tensor» %A, "S<1,0,1> o 0 o 8:1" : {_G}', "E0211"),
        (f'%0 = «tile.make_tensor» %A, "8:1" : {_G}', "the result is"),
        (f'%0 = «tile.make_tensor» %A, "?:?" (%t) : {_D}', "has 2 dynamic integers, not 1"),
    ),
    *tile_faults("tile.dim", ("%0 = «tile.dim» %A, 2", "E0208")),
    *tile_faults(
        "tile.stride",
        ("%0 = «tile.stride» %A, 2", "E0208"),
        ('%d = tile.logical_divide %A, "(4,8)"\n%0 = «tile.stride» %d, 1', "E0213"),
    ),
    *tile_faults("tile.get_scalars", (f'{_MAKE}%0 = «"tile.get_scalars"»(%d) : ({_D}) -> index', "has 2 integers")),
    *tile_faults("tile.crd2idx", ('%0 = «tile.crd2idx» (%t) in "4:?"', "has 1 dynamic integers, but 0 are given")),
    *tile_faults("tile.view", (f"%0 = «tile.view» %A with (%t) : {_D}", "has 2 dynamic integers, but 1 are given")),
    *tile_faults("tile.copy", (f"{_MAKE}«tile.copy» %d, %d", "E0207")),
    *tile_faults("tile.print_tensor", (f'{_MAKE}«tile.print_tensor» "d" %d', "only a static number of elements")),
    *_run(
        "run.launch",
        '!tile.tensor<f32, gmem, align<16>, "(?,4):(1,?{div=4})">',
        ('!tile.tensor<f32, gmem, align<16>, "(8,4):(1,6)">', "6 is not a multiple of 4"),
        ('!tile.tensor<f32, gmem, align<16>, "(8,5):(1,8)">', "5 stands where 4 belongs"),
        ('!tile.tensor<f32, gmem, align<16>, "32:1">', "nested differently from"),
        ('!tile.tensor<f32, gmem, align<8>, "(8,4):(1,8)">', "is aligned to 8 bytes, but the kernel needs 16"),
        ('!tile.tensor<f16, gmem, align<16>, "(8,4):(1,8)">', "but the kernel takes"),
        ("i32", "but the kernel takes"),
    ),
    Fault("run.arg", run_program('run.launch @m::@k grid(1) {\n«run.arg» "A" : ' + _D + ' = "0"\n}\n'), "must have a static layout"),
    _entry('%A: !ptx.ptr<global> align 16 layout "(?,4):(1,?{i64})", %A_0: i32', "is followed by i32, i64, not by i32"),
    _entry('%A: i32 layout "?:1", %A_0: i32', "is followed by"),
    Fault("ptx.entry", 'gpu.module @m {\nptx.entry @k(%A: !ptx.ptr<global> align 16 layout «"S<1,0,1> o 0 o 8:1"») threads(32) {\nptx.ret\n}\n}\n',
          "expected a plain layout"),
    Fault("ptx.entry", 'gpu.module @m {\n«"ptx.entry"»() <{sym_name = "k", arg_names = [], arg_aligns = array<i64>, arg_layouts = {A = #cute.layout<"?:1">}, threads = array<i64: 32, 1, 1>, '
          'function_type = () -> ()}> ({\n^bb0():\n"ptx.ret"() : () -> ()\n}) : () -> ()\n}\n', "a layout names something that is not a pointer argument"),
]  # fmt: skip
