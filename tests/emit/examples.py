# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One small use of each operation that stage `instr` may contain, on each type that it takes.

A body may use the arguments of `ARGS`; what it computes it stores, so that nothing is dropped as dead.
"""

from collections.abc import Iterator

from tilefold.dialects.ptx import BULK_REDUCTIONS, MAP_FIELDS
from tilefold.dialects.ptx.bulk import SENT_REDUCTIONS
from tilefold.dialects.ptx.entry import CLUSTER_REGISTERS
from tilefold.layout.atoms.cache_hints import LOAD_HINTS, POLICIES, PREFETCH_HINTS, STORE_HINTS
from tilefold.layout.atoms.contract import Named
from tilefold.layout.atoms.mma_sync import registers
from tilefold.layout.atoms.mma_table import mma_atom

from tests.dialects.samples import MXF8F6F4, NVF4

ARGS = (
    "%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16, %i1: i1, %i8: i8, %i16: i16, %i32: i32, "
    "%i64: i64, %f16: f16, %bf16: bf16, %f32: f32, %f64: f64, "
    '%map: !ptx.tensor_map of "f16 A dims (64, i32) strides (128) box (64, 8) swizzle 128B", '
    '%ints: !ptx.tensor_map of "s32 A dims (64) box (64)", '
    '%rows: !ptx.tensor_map of "f16 A dims (64, i32) strides (128) box (64, 1) swizzle 128B"'
)
SHARED = 1024

_INTEGERS = ("i8", "i16", "i32", "i64")
_FLOATS = ("f16", "bf16", "f32", "f64")
_INTEGER_BINARY = (
    *("addi", "subi", "muli", "divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui"),
    *("andi", "ori", "xori", "shli", "shrsi", "shrui", "minsi", "maxsi", "minui", "maxui"),
)
_FLOAT_BINARY = ("addf", "subf", "mulf", "divf", "maximumf", "minimumf", "maxnumf", "minnumf")
_FLOAT_UNARY = ("absf", "ceil", "floor", "round", "roundeven", "trunc", "sqrt")
_APPROXIMATE = ("exp", "exp2", "log", "log2", "log10", "sin", "cos", "tanh", "rsqrt", "erf")


_NUMBER_AND_COUNT = '%t = ptx.sreg "tid.x"\n%n = ptx.sreg "ntid.x"\n'


def _store(type: str) -> str:
    return f"ptx.st %r, %B align 8 : {type}, !ptx.ptr<global>"


def _computed(name: str, text: str, type: str) -> tuple[str, str]:
    return name, f"%r = {text}\n{_store(type)}"


def _arith() -> Iterator[tuple[str, str]]:
    for type in _INTEGERS:
        for name in _INTEGER_BINARY:
            yield _computed(f"arith.{name}", f"arith.{name} %{type}, %{type} : {type}", type)
        yield (
            "arith.cmpi",
            (
                f"%c = arith.cmpi ult, %{type}, %{type} : {type}\n"
                f"%r = arith.select %c, %{type}, %{type} : {type}\n{_store(type)}"
            ),
        )
    for type in _FLOATS:
        for name in _FLOAT_BINARY:
            yield _computed(f"arith.{name}", f"arith.{name} %{type}, %{type} : {type}", type)
        yield _computed("arith.negf", f"arith.negf %{type} : {type}", type)
        yield (
            "arith.cmpf",
            (
                f"%c = arith.cmpf olt, %{type}, %{type} : {type}\n"
                f"%r = arith.select %c, %{type}, %{type} : {type}\n{_store(type)}"
            ),
        )
    yield (
        "arith.select",
        ("%p = arith.select %i1, %A, %B : !ptx.ptr<global>\nptx.st %i32, %p align 4 : i32, !ptx.ptr<global>"),
    )


def _conversions() -> Iterator[tuple[str, str]]:
    for index, narrow in enumerate(_INTEGERS):
        for wide in _INTEGERS[index + 1 :]:
            yield _computed("arith.extsi", f"arith.extsi %{narrow} : {narrow} to {wide}", wide)
            yield _computed("arith.extui", f"arith.extui %{narrow} : {narrow} to {wide}", wide)
            yield _computed("arith.trunci", f"arith.trunci %{wide} : {wide} to {narrow}", narrow)
        for name in ("sitofp", "uitofp"):
            for type in _FLOATS:
                yield _computed(f"arith.{name}", f"arith.{name} %{narrow} : {narrow} to {type}", type)
        for name in ("fptosi", "fptoui"):
            for type in _FLOATS:
                yield _computed(f"arith.{name}", f"arith.{name} %{type} : {type} to {narrow}", narrow)
    for narrow, wide in (("f16", "f32"), ("bf16", "f32"), ("f16", "f64"), ("bf16", "f64"), ("f32", "f64")):
        yield _computed("arith.extf", f"arith.extf %{narrow} : {narrow} to {wide}", wide)
        yield _computed("arith.truncf", f"arith.truncf %{wide} : {wide} to {narrow}", narrow)
    yield _computed("arith.bitcast", "arith.bitcast %f32 : f32 to i32", "i32")


def _math() -> Iterator[tuple[str, str]]:
    for type in _FLOATS:
        for name in _FLOAT_UNARY:
            yield _computed(f"math.{name}", f"math.{name} %{type} : {type}", type)
        yield _computed("math.copysign", f"math.copysign %{type}, %{type} : {type}", type)
        yield _computed("math.fma", f"math.fma %{type}, %{type}, %{type} : {type}", type)
        if type != "f64":
            for name in _APPROXIMATE:
                for flags in ("", " fastmath<afn>", " fastmath<fast>"):
                    yield _computed(f"math.{name}", f"math.{name} %{type}{flags} : {type}", type)
            yield _computed("math.sqrt", f"math.sqrt %{type} fastmath<fast> : {type}", type)
    for type in _INTEGERS:
        for name in ("absi", "ctlz", "cttz", "ctpop"):
            yield _computed(f"math.{name}", f"math.{name} %{type} : {type}", type)


def _vector() -> Iterator[tuple[str, str]]:
    for type, size in (("i8", 8), ("i16", 8), ("f16", 8), ("bf16", 8), ("f32", 4), ("i32", 4), ("f64", 2)):
        v = f"vector<{size}x{type}>"
        load = f"%v = ptx.ld %A align 16 : !ptx.ptr<global> -> {v}\n"
        done = f"\nptx.st %r, %B align 16 : {v}, !ptx.ptr<global>"
        yield "vector.insert", f"{load}%r = vector.insert %{type}, %v[1] : {type} into {v}{done}"
        yield "vector.broadcast", f"%r = vector.broadcast %{type} : {type} to {v}{done}"
        pick = ", ".join(str(index) for index in reversed(range(size)))
        yield "vector.shuffle", f"{load}%r = vector.shuffle %v, %v [{pick}] : {v}, {v}{done}"
        yield "vector.extract", f"{load}%r = vector.extract %v[1] : {type} from {v}\n{_store(type)}"
        if type.startswith(("f", "b")):
            yield "vector.fma", f"{load}%r = vector.fma %v, %v, %v : {v}{done}"
            yield "arith.mulf", f"{load}%r = arith.mulf %v, %v : {v}{done}"
        else:
            yield "arith.addi", f"{load}%r = arith.addi %v, %v : {v}{done}"
            yield "arith.ceildivsi", f"{load}%r = arith.ceildivsi %v, %v : {v}{done}"
    yield (
        "math.exp",
        (
            "%v = ptx.ld %A align 16 : !ptx.ptr<global> -> vector<8xf16>\n%r = math.exp %v : vector<8xf16>\n"
            "ptx.st %r, %B align 16 : vector<8xf16>, !ptx.ptr<global>"
        ),
    )
    yield (
        "vector.bitcast",
        (
            "%v = ptx.ld %A align 16 : !ptx.ptr<global> -> vector<8xf16>\n"
            "%r = vector.bitcast %v : vector<8xf16> to vector<4xi32>\n"
            "ptx.st %r, %B align 16 : vector<4xi32>, !ptx.ptr<global>"
        ),
    )


def _structures() -> Iterator[tuple[str, str]]:
    struct = "!llvm.struct<(struct<()>, struct<(i32, i64)>)>"
    filled = f"%p = ub.poison : {struct}\n%q = llvm.insertvalue %i32, %p[1, 0] : {struct}\n"
    taken = f"%r = llvm.extractvalue %q[1, 0] : {struct}\n{_store('i32')}"
    for name in ("ub.poison", "llvm.insertvalue", "llvm.extractvalue"):
        yield name, filled + taken


_MMA_NAMES = (
    *("SM80_16x8x16_F32F16F16F32_TN", "SM80_16x8x16_F16F16F16F16_TN", "SM80_16x8x8_F32TF32TF32F32_TN"),
    *("SM120_16x8x32_TN<float_e2m1_t,float_e3m2_t,half_t>", NVF4, MXF8F6F4),
    *("SM80_SPARSE_16x8x32_F32F16F16F32_TN", "SM80_SPARSE_16x8x64_S32S8U8S32_TN_SATURATE"),
    *("SM80_8x8x4_F64F64F64F64_TN", "SM80_16x8x32_S32S8U8S32_TN_SATURATE", "SM80_16x8x16_F32BF16BF16F32_TN"),
)


def _mma(name: str) -> tuple[str, str]:
    """A matrix instruction, on arguments."""
    atom = mma_atom(name)
    held = {operand: registers(atom, operand) for operand in "ABCD"}
    argument = {"b32": "%i32", "f32": "%f32", "f64": "%f64"}
    operands = [", ".join([argument[held[o].kind]] * held[o].count) for o in "ABC"]
    stored = {"b32": "i32"}.get(held["D"].kind, held["D"].kind)
    op, scales = ("ptx.mma.sync", "")
    if atom.has_scales:
        op, scales = "ptx.mma.sync.block_scale", " scales (%i32, %i32) select (0, 1, 0, 3)"
    elif atom.is_sparse:
        op, scales = "ptx.mma.sync.sp", " metadata %i32 select 0"
    call = f'%d:{held["D"].count} = {op} "{name}" ({operands[0]}), ({operands[1]}), ({operands[2]}){scales}'
    stores = [f"ptx.st %d#{i}, %B align 8 : {stored}, !ptx.ptr<global>" for i in range(held["D"].count)]
    return f"{op}@12x" if name.startswith("SM120") else op, "\n".join([call, *stores])


def _hinted(policy: bool) -> str:
    """A load and a store with each cache hint that PTX has, of each width several times, perhaps by a policy."""
    types = ("i8", "i16", "i32", "i64", "vector<4xi32>", "vector<2xi64>", "vector<8xf16>")
    lines = ['%p = ptx.createpolicy "L2::evict_last.L2::evict_first" fraction 0.5'] if policy else []
    by = " policy %p" if policy else ""
    hints = [*((hint, "") for hint in sorted(LOAD_HINTS)), *(("", hint) for hint in sorted(STORE_HINTS))]
    for number, given in enumerate(hints):
        load, store = (f' cache "{hint}"' if hint else "" for hint in given)
        type = types[number % len(types)]
        lines.append(f"%r{number} = ptx.ld %A{load}{by} align 16 : !ptx.ptr<global> -> {type}")
        lines.append(f"ptx.st %r{number}, %B{store}{by} align 16 : {type}, !ptx.ptr<global>")
    return "\n".join(lines)


PTX: tuple[tuple[str, str], ...] = (
    *map(_mma, _MMA_NAMES),
    *(
        ("ptx.sreg", f'%r = ptx.sreg "{name}.{axis}"\n{_store("i32")}')
        for name in ("tid", "ntid", "ctaid", "nctaid")
        for axis in "xyz"
    ),
    ("ptx.ptr_add", "%p = ptx.ptr_add %B, %i32 : !ptx.ptr<global>, i32 -> !ptx.ptr<global>\n"
     "ptx.st %i32, %p align 4 : i32, !ptx.ptr<global>"),
    ("ptx.ptr_add", "%p = ptx.ptr_add %B, %i64 : !ptx.ptr<global>, i64 -> !ptx.ptr<global>\n"
     "ptx.st %i32, %p align 4 : i32, !ptx.ptr<global>"),
    ("ptx.ptr_add", "%p = ptx.ptr_add %B, %i32 within (%i32 < 8) : !ptx.ptr<global>, i32 -> !ptx.ptr<global>\n"
     "ptx.st %i32, %p align 4 : i32, !ptx.ptr<global>"),
    ("ptx.inttoptr", "%p = ptx.inttoptr %i64 align 4 : i64 -> !ptx.ptr<global>\n"
     "ptx.st %i32, %p align 4 : i32, !ptx.ptr<global>"),
    ("ptx.inttoptr", "%p = ptx.inttoptr %i32 align 4 : i32 -> !ptx.ptr<shared>\n"
     "ptx.st %i32, %p align 4 : i32, !ptx.ptr<shared>"),
    ("ptx.ptrtoint", f"%r = ptx.ptrtoint %B : !ptx.ptr<global> -> i64\n{_store('i64')}"),
    ("ptx.smem.addr", "%s = ptx.smem.addr 64\nptx.st %i32, %s align 4 : i32, !ptx.ptr<shared>"),
    ("ptx.local.alloc", "%l = ptx.local.alloc 8 align 8\nptx.st %f64, %l align 8 : f64, !ptx.ptr<local>\n"
     f"%r = ptx.ld %l align 8 : !ptx.ptr<local> -> i64\n{_store('i64')}"),
    ("ptx.st", _hinted(policy=False)),
    ("ptx.createpolicy", _hinted(policy=True)),
    *(
        ("ptx.createpolicy", f'%r = ptx.createpolicy "{priority}"\n{_store("i64")}')
        for priority in sorted(POLICIES)
    ),
    ("ptx.cp.async", '%s = ptx.smem.addr 0\nptx.cp.async "cg" 16 %s, %A'),
    ("ptx.cp.async", '%s = ptx.smem.addr 0\nptx.cp.async "ca" 16 %s, %A'),
    ("ptx.cp.async", '%s = ptx.smem.addr 0\nptx.cp.async "ca" 8 %s, %A'),
    ("ptx.cp.async", '%s = ptx.smem.addr 0\nptx.cp.async "ca" 4 %s, %A'),
    ("ptx.cp.async", '%s = ptx.smem.addr 0\nptx.cp.async "cg" 16 %s, %A size %i32'),
    ("ptx.cp.async", '%s = ptx.smem.addr 0\nptx.cp.async "ca" 4 %s, %A size %i32'),
    *(
        ("ptx.cp.async", f'%s = ptx.smem.addr 0\nptx.cp.async "{cache}" 16 %s, %A{size} prefetch "{prefetch}"')
        for cache in ("ca", "cg")
        for size in ("", " size %i32")
        for prefetch in sorted(PREFETCH_HINTS)
    ),
    *(
        ("ptx.cp.async", f'%s = ptx.smem.addr 0\nptx.cp.async "ca" 8 %s, %A{size} policy %i64{prefetch}')
        for size in ("", " size %i32")
        for prefetch in ("", ' prefetch "L2::128B"')
    ),
    ("ptx.cp.async.commit_group", "ptx.cp.async.commit_group"),
    ("ptx.cp.async.wait_group", "ptx.cp.async.wait_group 3"),
    ("ptx.cp.async.wait_all", "ptx.cp.async.wait_all"),
    ("ptx.bar.sync", "ptx.bar.sync 0"),
    ("ptx.bar.sync", "ptx.bar.sync 15"),
    ("ptx.bar.warp.sync", "ptx.bar.warp.sync -1"),
    ("ptx.bar.warp.sync", "ptx.bar.warp.sync 65535"),
    ("ptx.bar.warp.sync", "ptx.bar.warp.sync -1 lanes %i32"),
    *(
        ("ptx.ldmatrix", f"%s = ptx.smem.addr 0\n%r = ptx.ldmatrix x {num}{trans} %s : vector<{num}xi32>\n"
         f"ptx.st %r, %B align 16 : vector<{num}xi32>, !ptx.ptr<global>")
        for num in (1, 2, 4)
        for trans in ("", " trans")
    ),
    *(
        ("ptx.stmatrix@90", f"%s = ptx.smem.addr 0\n%r = ptx.ld %A align 16 : !ptx.ptr<global> -> vector<{num}xi32>\n"
         f"ptx.stmatrix x {num}{trans} %r, %s : vector<{num}xi32>")
        for num in (1, 2, 4)
        for trans in ("", " trans")
    ),
    ("ptx.movmatrix", f'%r = ptx.movmatrix trans %i32\n{_store("i32")}'),
    *(
        ("ptx.shfl.sync", f'%r = ptx.shfl.sync "{mode}" %{type}, %i32{rest} : {type}\n{_store(type)}')
        for mode in ("up", "down", "bfly", "idx")
        for type, rest in (("i32", ""), ("f32", " width 8 mask %i32"))
    ),
    *(
        (
            "ptx.shfl.sync.valid",
            f'%v, %p = ptx.shfl.sync.valid "{mode}" %{type}, %i32, %i32{rest} : {type}\n'
            f'%r = arith.select %p, %v, %{type} : {type}\n{_store(type)}',
        )
        for mode in ("up", "down", "bfly", "idx")
        for type, rest in (("i32", ""), ("f32", " mask %i32"))
    ),
    *(
        ("ptx.vote.sync", f'%v = ptx.vote.sync "{mode}" %i1 : i1\n%r = arith.extui %v : i1 to i32\n{_store("i32")}')
        for mode in ("all", "any", "uni")
    ),
    ("ptx.vote.sync", f'%r = ptx.vote.sync "ballot" %i1 mask %i32 : i32\n{_store("i32")}'),
    ("ptx.match.any.sync", f'%r = ptx.match.any.sync %i32\n{_store("i32")}'),
    *(
        ("ptx.redux.sync", f'%r = ptx.redux.sync "{kind}" %i32 : i32\n{_store("i32")}')
        for kind in ("add", "min", "max", "umin", "umax", "and", "or", "xor")
    ),
    *(
        ("ptx.redux.sync@10x", f'%r = ptx.redux.sync "{kind}" %f32 mask %i32 : f32\n{_store("f32")}')
        for kind in ("min", "max.NaN", "max.abs", "min.abs.NaN")
    ),
    ("ptx.elect.sync@90", f'%v = ptx.elect.sync\n%r = arith.extui %v : i1 to i32\n{_store("i32")}'),
    ("ptx.activemask", f'%r = ptx.activemask\n{_store("i32")}'),
    *(
        (f"ptx.{name}.approx", f"%r = ptx.{name}.approx{ftz} %f32 : f32\n{_store('f32')}")
        for name in ("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh")
        for ftz in (["", " ftz"] if name != "tanh" else [""])
    ),
    *(
        (
            f"ptx.{name}.approx{oldest}",
            f"%v = ptx.ld %A align 4 : !ptx.ptr<global> -> vector<2x{type}>\n"
            f"%r = ptx.{name}.approx %v : vector<2x{type}>\n{_store(f'vector<2x{type}>')}\n"
            f"%s = ptx.{name}.approx %{type} : {type}\nptx.st %s, %B align 2 : {type}, !ptx.ptr<global>",
        )
        for name in ("ex2", "tanh")
        for type, oldest in (("f16", ""), ("bf16", "@90"))
    ),
    *(
        ("ptx.cvt", f'%r = ptx.cvt "rn{relu}.{type}x2.f32" %f32, %f32 : (f32, f32) -> {v}\n{_store(v)}')
        for relu in ("", ".relu")
        for type, v in (("f16", "vector<2xf16>"), ("bf16", "vector<2xbf16>"))
    ),
    *(
        (
            "ptx.cvt@89",
            f'%e = ptx.cvt "rn.satfinite{relu}.{type}x2.f32" %f32, %f32 : (f32, f32) -> i16\n'
            f'%v = ptx.cvt "rn{relu}.f16x2.{type}x2" %e : (i16) -> vector<2xf16>\n'
            f'%r = ptx.cvt "rn.satfinite{relu}.{type}x2.f16x2" %v : (vector<2xf16>) -> i16\n{_store("i16")}',
        )
        for relu in ("", ".relu")
        for type in ("e4m3", "e5m2")
    ),
    *(
        (
            "ptx.cvt@100",
            f'%v = ptx.cvt "rn.satfinite{relu}.{type}x2.f32" %f32, %f32 : (f32, f32) -> {pair}\n'
            f'%r = ptx.cvt "rn{relu}.f16x2.{type}x2" %v : ({pair}) -> vector<2xf16>\n{_store("vector<2xf16>")}',
        )
        for relu in ("", ".relu")
        for type, pair in (("e2m1", "i8"), ("e2m3", "i16"), ("e3m2", "i16"))
    ),
    *(
        (
            "ptx.cvt@100",
            f'%e = ptx.cvt "{rounding}.ue8m0x2.f32" %f32, %f32 : (f32, f32) -> i16\n'
            '%v = ptx.cvt "rn.bf16x2.ue8m0x2" %e : (i16) -> vector<2xbf16>\n'
            f'%r = ptx.cvt "{rounding}.ue8m0x2.bf16x2" %v : (vector<2xbf16>) -> i16\n{_store("i16")}',
        )
        for rounding in ("rz", "rp", "rz.satfinite", "rp.satfinite")
    ),
    *(
        (
            "ptx.cvt@10x",
            f'%bits = arith.constant 305419896 : i32\n%r = ptx.cvt "rs{relu}.satfinite.{type}x4.f32" %f32, %f32, %f32, '
            f"%f32, %bits : (f32, f32, f32, f32, i32) -> {word}\n{_store(word)}",
        )
        for relu, type, word in (("", "e4m3", "i32"), (".relu", "e3m2", "i32"), ("", "e2m1", "i16"))
    ),
    ("ptx.cvt", f'%r = ptx.cvt "rna.tf32.f32" %f32 : (f32) -> f32\n{_store("f32")}'),
    *(
        (
            "ptx.f32x2@100",
            "%v = vector.broadcast %f32 : f32 to vector<2xf32>\n"
            f'%w = ptx.f32x2 "{form}.rn" {", ".join(["%v"] * count)} : {", ".join(["vector<2xf32>"] * count)} '
            f"-> vector<2xf32>\n%r = vector.extract %w[1] : f32 from vector<2xf32>\n{_store('f32')}",
        )
        for form, count in (("add", 2), ("sub", 2), ("mul", 2), ("fma", 3))
    ),
    *(
        ("ptx.minmax3@100", f'%r = ptx.minmax3 "{form}" %f32, %f32, %f32\n{_store("f32")}')
        for form in ("min", "min.NaN", "max", "max.NaN")
    ),
    ("ptx.st.bulk@100", "%bar = ptx.smem.addr 0\nptx.st.bulk %bar, %i64"),
    *(
        (
            "ptx.st@100",
            f"%v = ptx.ld %A align 32 : !ptx.ptr<global> -> {type}\n"
            f"ptx.st %v, %B align 32 : {type}, !ptx.ptr<global>",
        )
        for type in ("vector<8xf32>", "vector<4xi64>", "vector<16xbf16>")
    ),
    ("ptx.prmt", f"%r = ptx.prmt %i32, %i32, %i32\n{_store('i32')}"),
    *(
        ("ptx.dp4a", f'%r = ptx.dp4a "{a}.{b}" %i32, %i32, %i32\n{_store("i32")}')
        for a in ("s32", "u32")
        for b in ("s32", "u32")
    ),
    *(
        (f"ptx.{name}@90", f'%bar = ptx.smem.addr 0\n%s = ptx.smem.addr 512\n{line}')
        for name, line in (
            ("cp.async.bulk.load", "ptx.cp.async.bulk.load %s, %A, %i32, %bar"),
            ("cp.async.bulk.load", "ptx.cp.async.bulk.load %s, %A, %i32, %bar policy %i64"),
            ("cp.async.bulk.store", "ptx.cp.async.bulk.store %A, %s, %i32"),
            ("cp.async.bulk.store", "ptx.cp.async.bulk.store %A, %s, %i32 policy %i64"),
            *(
                ("cp.reduce.async.bulk", f'ptx.cp.reduce.async.bulk "{kind}" %A, %s, %i32{policy}')
                for kind in BULK_REDUCTIONS
                for policy in ("", " policy %i64")
            ),
            ("cp.async.bulk.prefetch", "ptx.cp.async.bulk.prefetch %A, %i32"),
            ("cp.async.bulk.prefetch", "ptx.cp.async.bulk.prefetch %A, %i32 policy %i64"),
            ("cp.async.bulk.commit_group", "ptx.cp.async.bulk.commit_group"),
            ("cp.async.bulk.wait_group", "ptx.cp.async.bulk.wait_group 1"),
            ("cp.async.bulk.wait_group", "ptx.cp.async.bulk.wait_group 0 read"),
            ("fence.proxy.async", "ptx.fence.proxy.async"),
            ("fence.proxy.async", 'ptx.fence.proxy.async of "shared"'),
            ("fence.proxy.async", 'ptx.fence.proxy.async of "global"'),
        )
    ),
    *(
        (f"ptx.{line.split()[0]}@90", f"%bar = ptx.smem.addr 0\n%s = ptx.smem.addr 512\nptx.{line}")
        for line in (
            *(
                f"cp.async.bulk.tensor.load %map[%i32, %i32], %s, %bar{multicast}{policy}"
                for multicast in ("", " multicast %i16")
                for policy in ("", " policy %i64")
            ),
            "cp.async.bulk.tensor.store %map[%i32, %i32], %s",
            "cp.async.bulk.tensor.store %ints[%i32], %s policy %i64",
            "cp.async.bulk.tensor.prefetch %map[%i32, %i32]",
            "cp.async.bulk.tensor.prefetch %map[%i32, %i32] policy %i64",
            'cp.reduce.async.bulk.tensor "add" %map[%i32, %i32], %s',
            *(f'cp.reduce.async.bulk.tensor "{kind}" %ints[%i32], %s policy %i64' for kind in ("min", "max", "and")),
            "prefetch.tensormap %map",
            "tensormap.copy %map, %s",
            "tensormap.copy %map, %A",
            "tensormap.cp_fenceproxy %A, %s",
            *(
                line.format(scope)
                for line in (
                    'fence.proxy.tensormap.release scope "{}"',
                    'fence.proxy.tensormap.acquire %A scope "{}"',
                    'tensormap.cp_fenceproxy %A, %s scope "{}"',
                )
                for scope in ("cta", "cluster", "gpu", "sys")
            ),
        )
    ),
    ("ptx.pair.leader@90", "%s = ptx.smem.addr 0\n%q = ptx.pair.leader %s\nptx.mbarrier.arrive %q"),
    (
        "ptx.clusterlaunchcontrol.try_cancel@100",
        "%s = ptx.smem.addr 0\n%bar = ptx.smem.addr 512\nptx.clusterlaunchcontrol.try_cancel %s, %bar",
    ),
    *(
        (
            f"ptx.clusterlaunchcontrol.{query}@100",
            "%s = ptx.smem.addr 0\n%v = ptx.ld %s align 16 : !ptx.ptr<shared> -> vector<2xi64>\n"
            f"{results} = ptx.clusterlaunchcontrol.{query} %v\n{more}{_store('i32')}",
        )
        for query, results, more in (
            ("is_canceled", "%c", "%r = arith.extui %c : i1 to i32\n"), ("get_first_ctaid", "%x, %r, %z", ""),
        )
    ),
    ("ptx.tensormap.load@90", f"%r = ptx.tensormap.load %map at 8\n{_store('i64')}"),
    ("ptx.cvta.tensor_map@90", "%m = ptx.cvta.tensor_map %A\nptx.prefetch.tensormap %m"),
    ("ptx.bar.sync", "ptx.bar.sync 1 threads 64"),
    ("ptx.bar.arrive", "ptx.bar.arrive 1 threads 64"),
    ("ptx.bar.sync", "ptx.bar.sync 1 unaligned\nptx.bar.arrive 2 threads 64 unaligned"),
    ("ptx.bar.sync", '%t = ptx.sreg "tid.x"\nptx.bar.sync 0 plus %t\nptx.bar.sync 1 plus %t threads 64'),
    ("ptx.bar.arrive", '%t = ptx.sreg "tid.x"\nptx.bar.arrive 1 plus %t threads 64'),
    ("ptx.bar.sync", f"{_NUMBER_AND_COUNT}ptx.bar.sync 1 plus %t for %n\nptx.bar.arrive 1 for %n"),
    ("ptx.bar.red", f'{_NUMBER_AND_COUNT}%r = ptx.bar.red "popc" %i1, 1 plus %t for %n : i32\n{_store("i32")}'),
    *(
        ("ptx.bar.red", f'%v = ptx.bar.red "{kind}" %i1, {rest} : i1\n%r = arith.extui %v : i1 to i32\n{_store("i32")}')
        for kind, rest in (("and", "0"), ("or", "2 threads 64"))
    ),
    ("ptx.bar.red", f'%r = ptx.bar.red "popc" %i1, 1 : i32\n{_store("i32")}'),
    ("ptx.bar.red", f'%r = ptx.bar.red "popc" %i1, 1 unaligned : i32\n{_store("i32")}'),
    *(
        (f"ptx.{name}", f"%bar = ptx.smem.addr 0\n{line}")
        for name, line in (
            ("mbarrier.init", "ptx.mbarrier.init %bar, %i32"),
            ("mbarrier.inval", "ptx.mbarrier.inval %bar"),
            ("mbarrier.arrive", "ptx.mbarrier.arrive %bar"),
            ("mbarrier.arrive.state", f"%r = ptx.mbarrier.arrive.state %bar\n{_store('i64')}"),
            ("mbarrier.arrive.state", f"%r = ptx.mbarrier.arrive.state drop %bar\n{_store('i64')}"),
            ("mbarrier.arrive.state@90", f"%r = ptx.mbarrier.arrive.state drop %bar count %i32\n{_store('i64')}"),
            (
                "mbarrier.try_wait.state@90",
                "%done = ptx.mbarrier.try_wait.state %bar, %i64\n"
                f"%r = arith.extui %done : i1 to i32\n{_store('i32')}",
            ),
            ("mbarrier.arrive@90", "ptx.mbarrier.arrive %bar count %i32"),
            ("mbarrier.expect_tx@90", "ptx.mbarrier.expect_tx %bar, %i32"),
            ("mbarrier.arrive.expect_tx@90", "ptx.mbarrier.arrive.expect_tx %bar, %i32"),
            ("mbarrier.complete_tx@90", "ptx.mbarrier.complete_tx %bar, %i32"),
            ("mbarrier.wait@90", "ptx.mbarrier.wait %bar, %i32"),
            ("cp.async.mbarrier.arrive", "ptx.cp.async.mbarrier.arrive noinc %bar"),
            ("cp.async.mbarrier.arrive", "ptx.cp.async.mbarrier.arrive %bar"),
        )
    ),
    *(
        (
            f"ptx.mbarrier.{name}",
            f"%bar = ptx.smem.addr 0\n%v = ptx.mbarrier.{name.partition('@')[0]} %bar, %i32\n"
            f"%r = arith.extui %v : i1 to i32\n{_store('i32')}",
        )
        for name in ("test_wait", "try_wait@90")
    ),
    *(
        (
            "ptx.inline",
            f'%r = ptx.inline "mov.b{bits} $0, $1;" constraints "={c},{c}"(%{type}) : ({type}) -> ({type})\n'
            f"{_store(type)}",
        )
        for type, c, bits in (
            *(("i16", "h", 16), ("f16", "h", 16), ("i32", "r", 32)),
            *(("i64", "l", 64), ("f32", "f", 32), ("f64", "d", 64)),
        )
    ),
    (
        "ptx.inline",
        '%lo, %r = ptx.inline "{ .reg .b32 t; mov.b64 {$0, t}, $2; add.s32 $1, t, 1; }" constraints "=r,=r,l" (%i64) '
        f": (i64) -> (i32, i32)\nptx.st %lo, %A align 4 : i32, !ptx.ptr<global>\n{_store('i32')}",
    ),
    ("ptx.nanosleep", "ptx.nanosleep %i32"),
    ("ptx.griddepcontrol.wait@90", "ptx.griddepcontrol.wait"),
    ("ptx.griddepcontrol.launch_dependents@90", "ptx.griddepcontrol.launch_dependents"),
    *(
        ("ptx.atom", f'%s = ptx.smem.addr 0\n%r = ptx.atom "{kind}" {place}, %{type}{rest}, {type}\n{_store(type)}')
        for kind in ("add", "min", "max", "umin", "umax", "and", "or", "xor", "exch")
        for type in ("i32", "i64")
        for place, rest in (("%A", ' order "acq_rel" : !ptx.ptr<global>'), ("%s", ' scope "cta" : !ptx.ptr<shared>'))
    ),
    *(
        (f"ptx.atom{least}", f'%r = ptx.atom "add" %A, %{type} : !ptx.ptr<global>, {type}\n{_store(type)}')
        for type, least in (("f32", ""), ("f64", ""), ("f16", ""), ("bf16", "@90"))
    ),
    *(
        (
            f"ptx.red{least}",
            f"%v = ptx.ld %A align {align} : !ptx.ptr<global> -> {type}\n"
            f'ptx.red "add" %B, %v : !ptx.ptr<global>, {type}',
        )
        for type, align, least in (
            ("vector<2xf16>", 4, ""), ("vector<2xbf16>", 4, "@90"),
            ("vector<2xf32>", 8, "@90"), ("vector<4xf32>", 16, "@90"),
        )
    ),
    *(
        (
            "ptx.red@90",
            f"%v = ptx.ld %A align 16 : !ptx.ptr<global> -> {type}\n"
            f'ptx.red "{kind}" %B, %v : !ptx.ptr<global>, {type}\n'
            f'%r = ptx.atom "{kind}" %B, %v order "acq_rel" : !ptx.ptr<global>, {type}\n'
            f"ptx.st %r, %B align 16 : {type}, !ptx.ptr<global>",
        )
        for type, kinds in (
            ("vector<4xf16>", ("add", "max")), ("vector<8xbf16>", ("add", "min")),
            ("vector<2xf32>", ("add",)), ("vector<4xf32>", ("add",)),
        )
        for kind in kinds
    ),
    *(  # a load of two would be one of each, as the instruction takes them
        (
            "ptx.red@90",
            f"%v = arith.constant dense<1.0> : {type}\n"
            f'ptx.red "{kind}" %B, %v : !ptx.ptr<global>, {type}\n'
            f'%r = ptx.atom "{kind}" %B, %v order "acq_rel" : !ptx.ptr<global>, {type}',
        )
        for type, kind in (("vector<2xf16>", "min"), ("vector<2xbf16>", "max"))
    ),
    *(
        ("ptx.red", f'%s = ptx.smem.addr 0\nptx.red "{kind}" %s, %i32 order "release" : !ptx.ptr<shared>, i32')
        for kind in ("add", "umin", "xor")
    ),
    *(
        ("ptx.atom.cas", f"%r = ptx.atom.cas %A, %{type}, %{type} : !ptx.ptr<global>, {type}\n{_store(type)}")
        for type in ("i32", "i64")
    ),
    *(
        (f"ptx.{name}@90", f"%v = ptx.ld.acquire %A : !ptx.ptr<global> -> vector<2xi64>\n{body}\n"
         'ptx.st.release %r, %B scope "sys" : vector<2xi64>, !ptx.ptr<global>')
        for name, body in (
            ("atom", '%r = ptx.atom "exch" %B, %v order "acq_rel" : !ptx.ptr<global>, vector<2xi64>'),
            ("atom.cas", "%r = ptx.atom.cas %B, %v, %v : !ptx.ptr<global>, vector<2xi64>"),
        )
    ),
    *(
        (
            "ptx.ld.acquire",
            f"%r = ptx.ld.acquire %A : !ptx.ptr<global> -> {type}\n"
            f'ptx.st.release %r, %B scope "sys" : {type}, !ptx.ptr<global>',
        )
        for type in ("i32", "f32", "i64", "f64", "vector<2xi32>", "vector<4xf32>")
    ),
    ("ptx.st.release", "%s = ptx.smem.addr 0\nptx.st.release %i32, %s : i32, !ptx.ptr<shared>"),
    ("ptx.ld.acquire@90", f'%r = ptx.ld.acquire %A scope "cluster" : !ptx.ptr<global> -> i32\n{_store("i32")}'),
    *(
        (
            "ptx.multimem.ld_reduce@90",
            f'%r = ptx.multimem.ld_reduce "{kind}" %A scope "sys" : !ptx.ptr<global> -> {type}\n'
            f'ptx.multimem.red "{kind}" %B, %r : !ptx.ptr<global>, {type}\n'
            f'ptx.multimem.st %r, %B order "release" scope "sys" : {type}, !ptx.ptr<global>',
        )
        for kind, types in (
            ("add", ("i32", "i64", "f32", "f64", "vector<2xf32>", "vector<4xf32>", "vector<2xf16>", "vector<4xf16>",
                     "vector<8xbf16>")),
            ("min", ("vector<4xbf16>", "vector<8xf16>")),
        )
        for type in types
    ),
    ("ptx.multimem.st@90", "ptx.multimem.st %f32, %B : f32, !ptx.ptr<global>"),
    *(
        ("ptx.multimem.red@90", f'ptx.multimem.red "add" %B, %{type} order "release" : !ptx.ptr<global>, {type}')
        for type in ("i32", "i64", "f32")
    ),
    ("ptx.fence", 'ptx.fence "acq_rel"\nptx.fence "sc" scope "sys"'),
    ("ptx.fence@90", 'ptx.fence "acquire"\nptx.fence "release" scope "sys"'),
    *(
        ("ptx.sreg@90", f'%r = ptx.sreg "{register}"\n{_store("i32")}') for register in CLUSTER_REGISTERS
    ),
    *(
        (f"ptx.{name}@90", f"%s = ptx.smem.addr 0\n%q = ptx.mapa %s, %i32\n{body}")
        for name, body in (
            ("mapa", "%r = ptx.ld %q align 16 : !ptx.ptr<shared_cluster> -> vector<4xf32>\n"
             "ptx.st %r, %B align 16 : vector<4xf32>, !ptx.ptr<global>"),
            ("mapa", "ptx.st %i8, %q align 1 : i8, !ptx.ptr<shared_cluster>"),
            ("mapa", f'%r = ptx.atom "add" %q, %i64 : !ptx.ptr<shared_cluster>, i64\n{_store("i64")}'),
            ("mapa", f"%r = ptx.atom.cas %q, %i32, %i32 : !ptx.ptr<shared_cluster>, i32\n{_store('i32')}"),
            ("mapa", 'ptx.red "or" %q, %i32 order "release" scope "cluster" : !ptx.ptr<shared_cluster>, i32'),
            ("mapa", f'%r = ptx.ld.acquire %q scope "cluster" : !ptx.ptr<shared_cluster> -> i32\n{_store("i32")}'),
            ("mapa", 'ptx.st.release %f32, %q scope "cluster" : f32, !ptx.ptr<shared_cluster>'),
            ("getctarank", f"%r = ptx.getctarank %q\n{_store('i32')}"),
            ("mbarrier.arrive", "ptx.mbarrier.arrive %q\nptx.mbarrier.arrive %q count %i32"),
            ("mbarrier.arrive", 'ptx.mbarrier.arrive %q scope "cta"'),
            ("mbarrier.expect_tx", "ptx.mbarrier.expect_tx %q, %i32"),
            ("mbarrier.arrive.expect_tx", "ptx.mbarrier.arrive.expect_tx %q, %i32"),
            ("mbarrier.complete_tx", "ptx.mbarrier.complete_tx %q, %i32"),
            ("cp.async.bulk.send", "ptx.cp.async.bulk.send %q, %s, %i32, %q"),
            *(
                ("cp.async.bulk.send", f'ptx.cp.async.bulk.send %q, %s, %i32, %q reduce "{kind}"')
                for kind in SENT_REDUCTIONS
            ),
            *(("st.async", f"ptx.st.async %{type}, %q, %q : {type}") for type in ("i32", "f32", "i64", "f64")),
            *(
                ("st.async", f"%v = ptx.ld %A align 16 : !ptx.ptr<global> -> {type}\nptx.st.async %v, %q, %q : {type}")
                for type in ("vector<2xi32>", "vector<4xf32>", "vector<2xi64>", "vector<2xf64>")
            ),
            *(
                ("red.async", f'ptx.red.async "{kind}" %i32, %q, %q : i32')
                for kind in ("add", "min", "max", "umin", "umax", "and", "or", "xor", "inc", "dec")
            ),
            ("red.async", 'ptx.red.async "add" %i64, %q, %q : i64'),
        )
    ),
    *(
        (f"ptx.barrier.cluster.{line.split()[0]}@90", f"ptx.barrier.cluster.{line}")
        for line in ("arrive", "arrive relaxed", "arrive aligned", "arrive relaxed aligned", "wait", "wait aligned")
    ),
    ("ptx.fence.mbarrier_init@90", "ptx.fence.mbarrier_init"),
    *(
        (f"ptx.mbarrier.{name}@90", f'%s = ptx.smem.addr 0\n{result}ptx.mbarrier.{name} %s, %i32 scope "cluster"')
        for name, result in (("test_wait", "%d = "), ("try_wait", "%d = "), ("wait", ""))
    ),
    ("ptx.printf", 'ptx.printf "plain 100%%\\n"() :'),
    ("ptx.printf", 'ptx.printf "%d %lld %f %e %p %x\\n"(%i32, %i64, %f16, %f64, %A, %i8) '
     ": i32, i64, f16, f64, !ptx.ptr<global>, i8"),
)  # fmt: skip
"""The operations of the `ptx` dialect, but for loads and stores. `name@90` needs sm_90, `name@10x` sm_100 to sm_109."""

_CONTROL: tuple[tuple[str, str], ...] = (
    ("cf.assert", 'cf.assert %i1, "no room"'),
    ("scf.if", "scf.if %i1 {\nptx.bar.warp.sync -1\n} else {\n"
     "ptx.st %i32, %B align 4 : i32, !ptx.ptr<global>\n}"),
    ("scf.for", "%z = arith.constant 0 : i32\n%o = arith.constant 1 : i32\n"
     "scf.for %n = %z to %i32 step %o : i32 {\nptx.st %n, %B align 4 : i32, !ptx.ptr<global>\n}"),
    ("scf.while", "scf.while (%x = %i32) : (i32) -> () {\n%c = arith.cmpi ne, %x, %i32 : i32\n"
     "scf.condition(%c)\n} do {\nscf.yield %i32 : i32\n}"),
)  # fmt: skip


def accesses() -> Iterator[tuple[str, str]]:
    """A load and a store of each type and width, in global and shared memory."""
    widths = (("i8", 1), ("i16", 2), ("f16", 2), ("bf16", 2), ("i32", 4), ("f32", 4), ("i64", 8), ("f64", 8))
    for element, size in widths:
        for count in (1, 2, 4, 8, 16):
            if size * count > 16:
                continue
            type = element if count == 1 else f"vector<{count}x{element}>"
            align = size * count
            yield (
                "ptx.st",
                (
                    f"%r = ptx.ld %A align {align} : !ptx.ptr<global> -> {type}\n%s = ptx.smem.addr 0\n"
                    f"ptx.st %r, %s align {align} : {type}, !ptx.ptr<shared>\n"
                    f"%q = ptx.ld %s align {align} : !ptx.ptr<shared> -> {type}\n"
                    f"ptx.st %q, %B align {align} : {type}, !ptx.ptr<global>"
                ),
            )


def exists(name: str, sm: int) -> bool:
    """Whether an architecture has the example of this name."""
    needed = name.partition("@")[2]
    return sm // 10 == int(needed[:-1]) if needed.endswith("x") else sm >= int(needed or 0)


MATRICES_OF_BYTES: tuple[tuple[str, str], ...] = (
    *(
        ("ptx.ldmatrix", "%s = ptx.smem.addr 0\n"
         f'%r = ptx.ldmatrix x {num} trans "m16n16.b8" %s : vector<{2 * num}xi32>\n'
         f"ptx.st %r, %B align 16 : vector<{2 * num}xi32>, !ptx.ptr<global>")
        for num in (1, 2)
    ),
    *(
        ("ptx.ldmatrix", "%s = ptx.smem.addr 0\n"
         f'%r = ptx.ldmatrix x {num}{trans} "{shape}.{elements}" %s : vector<{each * num}xi32>\n'
         f"ptx.st %r, %B align 16 : vector<{each * num}xi32>, !ptx.ptr<global>")
        for elements in ("b8x16.b4x16_p64", "b8x16.b6x16_p32")
        for trans, shape, each, numbers in (("", "m8n16", 1, (1, 2, 4)), (" trans", "m16n16", 2, (1, 2)))
        for num in numbers
    ),
    *(
        ("ptx.stmatrix", f"%s = ptx.smem.addr 0\n%r = ptx.ld %A align 16 : !ptx.ptr<global> -> vector<{num}xi32>\n"
         f'ptx.stmatrix x {num} trans "m16n8.b8" %r, %s : vector<{num}xi32>')
        for num in (1, 2, 4)
    ),
)  # fmt: skip
"""Need sm_100a, or another target with a suffix."""


def multiplication(name: str, flags: str = "") -> str:
    """A multiplication of a warpgroup, with registers of A from an argument, which stores its accumulators."""
    atom = mma_atom(name)
    d, in_registers = registers(atom, "D"), atom.operand("A").named is Named.VALUE
    type = "f32" if d.kind == "f32" else "i32"
    filled = [
        f'%q{i} = ptx.inline "mov.b32 $0, $1;" constraints "=r,r"(%i32) : (i32) -> (i32)\n'
        f"%p{i} = ptx.ptr_add %a, %o{i} : !ptx.ptr<local>, i32 -> !ptx.ptr<local>\n"
        f"ptx.st %q{i}, %p{i} align 4 : i32, !ptx.ptr<local>"
        for i in range(registers(atom, "A").count if in_registers else 0)
    ]
    a, of_a = ("%a", "!ptx.ptr<local>") if in_registers else ("%i64", "i64")
    sparse = " metadata %i32 select 0" if atom.is_sparse else ""
    offsets = [f"%o{i} = arith.constant {4 * i} : i32" for i in range(max(d.count, 4))]
    read = [
        f"%e{i} = ptx.ptr_add %d, %o{i} : !ptx.ptr<local>, i32 -> !ptx.ptr<local>\n"
        f"%r{i} = ptx.ld %e{i} align 4 : !ptx.ptr<local> -> {type}\n"
        f"ptx.st %r{i}, %B align 4 : {type}, !ptx.ptr<global>"
        for i in range(d.count)
    ]
    return "\n".join([
        f"%d = ptx.local.alloc {4 * d.count} align 16", "%a = ptx.local.alloc 16 align 16", *offsets, *filled,
        "ptx.wgmma.fence", f'ptx.wgmma.mma_async "{name}" {flags} %d, {a}, %i64, %i1{sparse} : {of_a}',
        "ptx.wgmma.commit_group", "ptx.wgmma.wait_group 0", *read,
    ])  # fmt: skip


WARPGROUPS: tuple[tuple[str, str], ...] = (
    ("ptx.wgmma.fence", "ptx.wgmma.fence"),
    ("ptx.wgmma.commit_group", "ptx.wgmma.commit_group"),
    ("ptx.wgmma.wait_group", "ptx.wgmma.wait_group 7"),
    ("ptx.wgmma.mma_async", multiplication("SM90_64x8x16_F32F16F16_SS<Major::K,Major::K>")),
    ("ptx.wgmma.mma_async", multiplication("SM90_SPARSE_64x16x32_F32F16F16_RS<Major::K,Major::MN>")),
    ("ptx.wgmma.mma_async", multiplication("SM90_SPARSE_64x8x64_S32U8S8_SS_TN_SATURATE")),
    (
        "ptx.wgmma.descriptor",
        "%s = ptx.smem.addr 1024\n%w = ptx.wgmma.descriptor %s leading 1 stride 64 swizzle 3\n"
        "ptx.st %w, %B align 8 : i64, !ptx.ptr<global>",
    ),
    ("ptx.setmaxnreg", "ptx.setmaxnreg dec 40\nptx.setmaxnreg inc 64"),
    ("ptx.tensormap.replace", 'ptx.tensormap.replace "global_address" %A, %B : !ptx.ptr<global>'),
    *(
        ("ptx.tensormap.replace", f"%s = ptx.smem.addr 512\nptx.tensormap.replace {text}")
        for name, field in MAP_FIELDS.items()
        for at in ("%A", "%s")
        for text in (
            *(f'"{name}" "{word}" {at}' for word in field.words),
            *(f'"{name}" at {n} {at}, %i{field.bits} : i{field.bits}' for n in range(field.dimensions)),
            *([] if field.words or field.dimensions else [f'"{name}" {at}, %i{field.bits} : i{field.bits}']),
        )
    ),
)
"""Of sm_90a alone."""


def all_examples(sm: int = 80) -> list[tuple[str, str]]:
    """Every example that an architecture has: the operation that it is for, and a kernel's body."""
    found = [*_arith(), *_conversions(), *_math(), *_vector(), *_structures(), *accesses(), *PTX, *_CONTROL]
    return [(name.partition("@")[0], body) for name, body in found if exists(name, sm)]
