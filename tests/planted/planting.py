# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small kernels as tables of text: each faulty one beside its corrected twin, and the fault that is expected.

In a table, `## title` begins a kernel. The next line is `CODE | words` of the report, or `ok`. Lines that end in `//-`
belong to the faulty kernel alone, those in `//+` to the corrected one alone; `!` and `~` mark the two places that the
report must name. Other lines set the launch: `threads 64`, `blocks 2`, `cluster 2`, `sm 90`, `tile` for a kernel on
tensors, `A LAYOUT`, `fill B ones`, `keep B` for an output that the kernel need not write, `check CONDITION`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
TABLES = ("ordering_blocks", "ordering_threads", "memory", "liveness", "launch", "protocols", "tricky")

_CONSTANTS = "".join(f"%n{n} = arith.constant {n} : i32\n" for n in (0, 1, 2, 3, 4, 7, 8, 16, 31, 32, 63, 64, 128, 256))
_WORDS = """\
%t = gpu.thread_id x
%blk = gpu.block_id x
%i = arith.index_cast %t : index to i32
%j = arith.index_cast %blk : index to i32
%o = arith.muli %i, %n4 : i32
%s = ptx.smem.addr 0
%bar = ptx.smem.addr 1024
%bar2 = ptx.smem.addr 1032
%a = ptx.ptr_add %A, %o : !g, i32 -> !g
%b = ptx.ptr_add %B, %o : !g, i32 -> !g
%B0 = ptx.ptr_add %B, %n0 : !g, i32 -> !g
%oj = arith.muli %j, %n4 : i32
%aj = ptx.ptr_add %A, %oj : !g, i32 -> !g
%bj = ptx.ptr_add %B, %oj : !g, i32 -> !g
%mine = ptx.ptr_add %s, %o : !s, i32 -> !s
%mine2 = ptx.ptr_add %mine, %n256 : !s, i32 -> !s
%leads = arith.cmpi eq, %i, %n0 : i32
%follows = arith.cmpi eq, %i, %n1 : i32
%second = arith.cmpi eq, %i, %n32 : i32
%low = arith.cmpi ult, %i, %n32 : i32
%half = arith.cmpi ult, %i, %n16 : i32
%middle = arith.cmpi ult, %i, %n64 : i32
%block0 = arith.cmpi eq, %j, %n0 : i32
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%c3 = arith.constant 3 : index
%lower_pair = arith.cmpi ult, %i, %n64 : i32
"""
"""Numbers and addresses: thread t of a block has the word %mine of shared memory, and %a and %b of the arguments."""
_OTHERS = "".join(
    f"%{name}.i = arith.{op} %i, %{by} : i32\n%{name}.o = arith.muli %{name}.i, %n4 : i32\n"
    f"%{name} = ptx.ptr_add %s, %{name}.o : !s, i32 -> !s\n"
    for name, op, by in (
        ("near", "xori", "n1"), ("across", "xori", "n16"), ("far", "xori", "n32"), ("opposite", "xori", "n64"),
        ("two_back", "subi", "n64"),
    )
)  # fmt: skip
"""The words of other threads: of the next lane, of another one, of the next warp, and of the one behind that."""
_INDICES = "%t = gpu.thread_id x\n%bx = gpu.block_id x\n%by = gpu.block_id y\n" + "".join(
    f"%c{n} = arith.constant {n} : index\n" for n in (0, 1, 2, 3, 4, 8, 16, 32, 48, 63)
)
_TYPES = """\
!g = !ptx.ptr<global>
!s = !ptx.ptr<shared>
"""
_TILE_TYPES = """\
!s = !tile.tensor<f32, smem, align<16>, "64:1">
!r = !tile.tensor<f32, rmem, align<16>, "(2,2):(1,2)">
"""
_SPIN = re.compile(r"^(\s*)spin(_until_zero)? (.*)$")


@dataclass(frozen=True)
class Planted:
    """A kernel of a table: its title, the code and the words of the fault that is expected, both texts, and the lines
    of the faulty one that the report names.
    """

    table: str
    title: str
    code: str
    words: tuple[str, ...]
    lines: tuple[str, ...] = field(repr=False)

    @property
    def faulty(self) -> str:
        """The program with the fault; for a correct kernel the program."""
        return _program(self.lines, "+")

    @property
    def corrected(self) -> str:
        """The program without the fault."""
        return _program(self.lines, "-")

    @property
    def places(self) -> frozenset[int]:
        """The lines of the faulty program that the report must name."""
        text = self.faulty.splitlines()
        return frozenset(n for n, line in enumerate(text, 1) if re.search(r"//[-+]?[!~]+$", line))

    @property
    def changes(self) -> frozenset[int]:
        """The lines of the faulty program that the correction changes, or before which it adds some."""
        text, changed = self.faulty.splitlines(), set[int]()
        body = [line for line in self.lines if _SETTING.match(line.partition(" //")[0]) is None]
        kept = [line for line in body if "+" not in line.partition(" //")[2]]
        lines = [_written(line) for line in kept]
        line = next(n for n in range(len(text)) if text[n : n + len(lines)] == lines) + 1
        for given in body:
            flags = given.partition(" //")[2]
            if flags.startswith(("-", "+")):
                changed.add(line)
            line += "+" not in flags
        return frozenset(changed)


def planted(folder: Path = HERE, tables: tuple[str, ...] = TABLES) -> Iterator[Planted]:
    """The kernels of all tables."""
    for table in tables:
        _, *entries = (folder / f"{table}.txt").read_text().split("\n## ")
        for entry in entries:
            title, expected, *lines = entry.strip().splitlines()
            code, _, words = expected.partition(" | ")
            lines = [line for line in lines if not _REPORTED.match(line)]
            yield Planted(table, title, code, tuple(words.split("; ")) if words else (), tuple(lines))


_SETTING = re.compile(r"^(threads|blocks|cluster|sm|tile|ptx|A|B|fill|keep|check|map|registers)( .*)?$")
_REPORTED = re.compile(r"^(https://|fault: |fix: )")
"""The lines of a kernel that say where its fault was found."""


def _program(lines: tuple[str, ...], without: str) -> str:
    settings: dict[str, str] = {}
    body: list[str] = []
    for line in lines:
        text, mark, flags = line.partition(" //")
        if mark and without in flags:
            continue
        setting = _SETTING.match(text)
        if setting is not None:
            settings[setting[1]] = (setting[2] or "").strip()
        else:
            body.append(_written(line))
    return _tile(settings, body) if "tile" in settings else _ptx(settings, body)


def _written(line: str) -> str:
    """A line of a table in the program."""
    text, mark, flags = line.partition(" //")
    return _spun(text) + (f" //{flags}" if mark else "")


def _spun(line: str) -> str:
    """A loop that looks at memory until it is not 0, or until it is."""
    spin = _SPIN.match(line)
    if spin is None:
        return line
    indent, until_zero, look = spin.groups()
    more = "ne" if until_zero else "eq"
    return (
        f"{indent}scf.while () : () -> () {{ %v = {look} %more = arith.cmpi {more}, %v, %n0 : i32 "
        "scf.condition(%more) } do { scf.yield }"
    )


def _ptx(settings: dict[str, str], body: list[str]) -> str:
    cluster = f" cluster({settings['cluster']}, 1, 1)" if "cluster" in settings else ""
    head = "%A: !g align 16, %B: !g align 16, %F: !g align 16"
    if "map" in settings:
        head += f', %W: !g align 128, %m: !ptx.tensor_map of "{settings["map"]}"'
    arguments = {"A": ("i32", "512:1", "arange"), "B": ("i32", "64:1", "poison"), "F": ("i32", "16:1", "zeros")}
    registers = f" max_registers({settings['registers']})" if "registers" in settings else ""
    threads = settings.get("threads", "64")
    kernel = f"ptx.entry @k({head}) threads({threads}){registers}{cluster} shared(2048) {{"
    if "map" in settings:
        arguments["W"] = ("i32", "32:1", "zeros")
    if threads != "64":
        arguments["B"] = ("i32", f"{threads}:1", "poison")
    return _launched(settings, _TYPES, kernel, _CONSTANTS + _WORDS + _OTHERS, body, "ptx.ret", arguments)


def _tile(settings: dict[str, str], body: list[str]) -> str:
    arguments = {name: ("f32", settings.get(name, "64:1"), fill) for name, fill in (("A", "arange"), ("B", "poison"))}
    types = _TILE_TYPES
    for name, (element, layout, _) in arguments.items():
        types += f'!g{name} = !tile.tensor<{element}, gmem, align<16>, "{layout}">\n'
    kernel = f"tile.kernel @k(%A: !gA, %B: !gB) threads({settings.get('threads', '64')}) {{"
    return _launched(settings, types, kernel, _INDICES, body, "return", arguments)


def _launched(
    settings: dict[str, str],
    types: str,
    kernel: str,
    words: str,
    body: list[str],
    end: str,
    arguments: dict[str, tuple[str, str, str]],
) -> str:
    name, _, fill = settings.get("fill", "").partition(" ")
    lines = [*types.splitlines(), "gpu.module @kernels {", kernel, *words.splitlines(), *body, end, "}", "}"]
    lines.append(f"run.launch @kernels::@k grid({settings.get('blocks', '1')}) {{")
    for argument, (element, layout, value) in arguments.items():
        given = fill if argument == name else "zeros" if settings.get("keep") == argument else value
        lines.append(f'run.arg "{argument}" : !tile.tensor<{element}, gmem, align<16>, "{layout}"> = "{given}"')
    if "check" in settings:
        lines.append(f'run.check "{settings["check"]}"')
    return "\n".join([*lines, "}"]) + "\n"
