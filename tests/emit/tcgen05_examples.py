# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels' bodies with each instruction of tcgen05, in each form."""

from tilefold.dialects.ptx.tcgen05.copies import TensorLoadReducedOp
from tilefold.layout.atoms.tcgen05_shapes import ACCESS_SHAPES, COPY_SHAPES

_CELL = "%c = ptx.inttoptr %i32 align 4 : i32 -> !ptx.ptr<tmem>\n%p = arith.trunci %i32 : i32 to i1\n"
_SHARED = "%s = ptx.smem.addr 512\n"
_ROWS = "%rows[%i32, %i32, %i32, %i32, %i32]"


def _accesses() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for shape in ACCESS_SHAPES.values():
        for count in (1, 2, shape.most):
            type, offset = f"vector<{count * shape.registers}xi32>", " offset 16" if shape.has_offset else ""
            load = f'%v = ptx.tcgen05.ld "{shape.name}" x {count} %c{offset} : {type}'
            store = f'ptx.tcgen05.st "{shape.name}" x {count} %v, %c{offset} : {type}'
            found.append(("ptx.tcgen05.ld", _CELL + load))
            found.append(("ptx.tcgen05.st", f"{_CELL}{load}\n{store}"))
            found.append(("ptx.tcgen05.ld", _CELL + load.replace(" %c", " pack %c")))
            found.append(("ptx.tcgen05.st", f"{_CELL}{load}\n{store.replace(' %v', ' unpack %v')}"))
    return found


def _multiplications() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for group in (1, 2):
        for kind in ("f16", "tf32", "f8f6f4"):
            for a, type in (("%i64", "i64"), ("%c", "!ptx.ptr<tmem>")):
                head = f'ptx.tcgen05.mma "{kind}" cta_group {group} %c, {a}, %i64, %i32, %p'
                words = ", ".join(["%i32"] * 4 * group)
                for more in ("", f"mask({words})", "sparse %c", 'collector "a::fill"', "mask("):
                    if more != "mask(":
                        found.append(("ptx.tcgen05.mma", f"{_CELL}{head} {more} : {type}"))
                if kind != "f8f6f4":
                    found.append(("ptx.tcgen05.mma", f"{_CELL}{head} mask({words}) scale_d 15 : {type}"))
                if type != "i64":
                    found.append(("ptx.tcgen05.mma", f'{_CELL}{head} ashift collector "a::lastuse" : {type}'))
        for kind, words in (
            ("mxf8f6f4", ("", 'scale "block32"')),
            ("mxf4", ("", 'scale "block32"')),
            ("mxf4nvf4", ('scale "block32"', 'scale "block16"')),
        ):
            for word in words:
                head = f'ptx.tcgen05.mma.block_scale "{kind}" cta_group {group} {word} %c, %i64, %i64, %i32, %p, %c, %c'
                found.append(("ptx.tcgen05.mma.block_scale", f"{_CELL}{head} : i64"))
                found.append(("ptx.tcgen05.mma.block_scale", f'{_CELL}{head} collector "a::discard" : i64'))
    ws = 'ptx.tcgen05.mma.ws "f16" cta_group 1 %c, %i64, %i64, %i32, %p'
    for more in ("", "zero_columns %i64", "sparse %c", 'collector "b3::lastuse"'):
        found.append(("ptx.tcgen05.mma.ws", f"{_CELL}{ws} {more} : i64"))
    return found


def _others() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for group in (1, 2):
        found += [
            ("ptx.tcgen05.alloc", f"{_SHARED}ptx.tcgen05.alloc cta_group {group} %s, %i32"),
            ("ptx.tcgen05.dealloc", f"{_CELL}ptx.tcgen05.dealloc cta_group {group} %c, %i32"),
            ("ptx.tcgen05.relinquish_alloc_permit", f"ptx.tcgen05.relinquish_alloc_permit cta_group {group}"),
            ("ptx.tcgen05.commit", f"{_SHARED}ptx.tcgen05.commit cta_group {group} %s"),
            ("ptx.tcgen05.commit", f"{_SHARED}ptx.tcgen05.commit cta_group {group} %s multicast %i16"),
        ]
        for shape in COPY_SHAPES:
            for unpack in ("", 'unpack "b4x16_p64"', 'unpack "b6x16_p32"'):
                found.append(("ptx.tcgen05.cp", f'{_CELL}ptx.tcgen05.cp "{shape}" cta_group {group} {unpack} %c, %i64'))
    found += [
        ("ptx.cp.async.bulk.tensor.load", f"{_SHARED}%q = ptx.pair.leader %s\nptx.cp.async.bulk.tensor.load {rest}")
        for rest in (
            "%map[%i32, %i32], %s, %q pair",
            "%map[%i32, %i32], %s, %s pair multicast %i16 policy %i64",
            f"gather4 {_ROWS}, %s, %s",
            f"gather4 {_ROWS}, %s, %q pair multicast %i16",
        )
    ]
    found.append(("ptx.cp.async.bulk.tensor.store", f"{_SHARED}ptx.cp.async.bulk.tensor.store scatter4 {_ROWS}, %s"))
    return [
        *found,
        ("ptx.clusterlaunchcontrol.try_cancel", f"{_SHARED}ptx.clusterlaunchcontrol.try_cancel %s, %s multicast"),
        ("ptx.tcgen05.fence", 'ptx.tcgen05.fence "before_thread_sync"'),
        ("ptx.tcgen05.fence", 'ptx.tcgen05.fence "after_thread_sync"'),
        ("ptx.tcgen05.wait", 'ptx.tcgen05.wait "ld"'),
        ("ptx.tcgen05.wait", 'ptx.tcgen05.wait "st"'),
        (
            "ptx.tcgen05.descriptor",
            f"{_SHARED}%w = ptx.tcgen05.descriptor %s leading 1 stride 64 swizzling 2\n"
            "ptx.st %w, %B align 8 : i64, !ptx.ptr<global>",
        ),
    ]


TCGEN05: tuple[tuple[str, str], ...] = (*_accesses(), *_multiplications(), *_others())
"""Of sm_100a and sm_103a: the operation that each is for, and the body."""

EXACT: tuple[tuple[str, str], ...] = tuple([
    ("ptx.tcgen05.mma.block_scale",
     f'{_CELL}ptx.tcgen05.mma.block_scale "{kind}" cta_group 1 scale "{word}" %c, %i64, %i64, %i32, %p, %c, %c : i64')
    for kind, word in (
        ("mxf8f6f4", "scale_vec::1X"), ("mxf4", "scale_vec::2X"), ("mxf4nvf4", "scale_vec::2X"),
        ("mxf4nvf4", "scale_vec::4X"),
    )
]) + tuple([
    ("ptx.tcgen05.shift", f"{_CELL}ptx.tcgen05.shift cta_group {group} %c") for group in (1, 2)
]) + tuple([
    ("ptx.tcgen05.mma.block_scale",
     f'{_CELL}ptx.tcgen05.mma.block_scale "{kind}" cta_group 1 scale "block32" %c, %i64, %i64, %i32, %p, %c, %c '
     "sparse %c : i64")
    for kind in ("mxf4", "mxf4nvf4")
])  # fmt: skip
"""Those of single targets alone."""
INTEGERS = ("ptx.tcgen05.mma", f'{_CELL}ptx.tcgen05.mma "i8" cta_group 1 %c, %i64, %i64, %i32, %p : i64')
"""That sm_103a lacks."""
REDUCING: tuple[tuple[str, str], ...] = tuple(
    [
        (
            "ptx.tcgen05.ld.red",
            f'{_CELL}%v:2 = ptx.tcgen05.ld.red "{shape}" x {count} "{kind}" %c{offset} : vector<{count}xi32>, '
            f"{'f32' if kind.endswith('f32') else 'i32'}",
        )
        for shape, offset in (("32x32b", ""), ("16x32bx2", " offset 4"))
        for count in (2, 128)
        for kind in TensorLoadReducedOp.KINDS
    ]
)
"""That only sm_103a has."""
