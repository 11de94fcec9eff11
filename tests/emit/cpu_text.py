# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Text of LLVM IR for NVPTX as text for the processor at hand, for `.cpu`.

State spaces become the one address space of the machine, the block's shared memory a global array, NVVM's intrinsics
functions of a library. Each thread of a block is a coroutine, which suspends where it waits at a barrier.
"""

import re
from dataclasses import dataclass

from tests.emit.cpu_assembly import without_assembly
from tests.emit.cpu_library import CONVERSIONS, LIBRARY


class NotOnCpu(Exception):  # noqa: N818
    """The kernel has an instruction that a CPU does not run here; `instruction` is its name."""

    def __init__(self, instruction: str) -> None:
        super().__init__(f"{instruction} does not run on the CPU")
        self.instruction = instruction


@dataclass(frozen=True)
class Retargeted:
    """Text for the processor: `@x.start` begins a thread, `@x.resume` goes on after a barrier."""

    text: str
    shared: str | None
    """The symbol of the block's shared memory; None where the kernel has none."""
    shared_bytes: int


_SHARED = re.compile(r'^(@(?:"[^"]+"|[\w$.]+)) = .*addrspace\(3\) global \[(\d+) x i8\].*\n', re.MULTILINE)
_KERNEL = re.compile(r'^define (?:[\w.]+ )*?void @"?([\w$.-]+)"?\(.*?\).*?\{\n(.*?)^\}\n', re.MULTILINE | re.DOTALL)
_LABEL = re.compile(r'^("[^"]+"|[\w$.-]+):')
_BARRIER = "call void @x.barrier.cta.sync.aligned.all(i32 "
_OWN = re.compile(r"@llvm\.nvvm\.")
_CONVERSION = re.compile(r"\bfpto([su])i (\w+) (\S+) to (\w+)")
_DIVISION = re.compile(r"\b([su](?:div|rem)) (?:exact )?(i8|i16|i32|i64) (\S+), (\S+)(?=,|$)", re.MULTILINE)
_DEFINED = re.compile(r"^(?:define .*?)?@([\w.]+)(?:\(.*\{| = )", re.MULTILINE)
_USED = re.compile(r"@(x\.[\w.]+|__trunc\w+|vprintf)\b")
_LETTERS = {"i32": "i", "i64": "ll"}

_START = """
define ptr @x.start(ptr %arguments) {{ ; the thread, or null where it has ended
{loads}  %thread = call ptr @x.kernel({given})
  %done = call i1 @x.after(ptr %thread)
  %result = select i1 %done, ptr null, ptr %thread
  ret ptr %result
}}
define i1 @x.resume(ptr %thread) {{
  call void @llvm.coro.resume(ptr %thread)
  %done = call i1 @x.after(ptr %thread)
  ret i1 %done
}}
define i1 @x.after(ptr %thread) {{
  %done = call i1 @llvm.coro.done(ptr %thread)
  br i1 %done, label %ended, label %waits
ended:
  call void @llvm.coro.destroy(ptr %thread)
  ret i1 true
waits:
  ret i1 false
}}
@x.waits.at = global i32 0
@x.registers = global [12 x i32] zeroinitializer
"""
_BEGIN = """  %x.id = call token @llvm.coro.id(i32 0, ptr null, ptr null, ptr null)
  %x.size = call i64 @llvm.coro.size.i64()
  %x.align = call i64 @llvm.coro.align.i64()
  %x.memory = call ptr @aligned_alloc(i64 4096, i64 %x.size)
  %x.thread = call ptr @llvm.coro.begin(token %x.id, ptr %x.memory)
"""
_SUSPEND = """  store i32 {barrier}, ptr @x.waits.at
  %x.woken.{number} = call i8 @llvm.coro.suspend(token none, i1 false)
  switch i8 %x.woken.{number}, label %x.left [i8 0, label %x.resumed.{number}
    i8 1, label %x.ended]
x.resumed.{number}:
"""
_END = """x.returned:
  %x.last = call i8 @llvm.coro.suspend(token none, i1 true)
  switch i8 %x.last, label %x.left [i8 0, label %x.never
    i8 1, label %x.ended]
x.never:
  unreachable
x.ended:
  %x.freed = call ptr @llvm.coro.free(token %x.id, ptr %x.thread)
  call void @free(ptr %x.freed)
  br label %x.left
x.left:
  call void @llvm.coro.end(ptr %x.thread, i1 false, token none)
  ret ptr %x.thread
"""


def retargeted(llvm_ir: str, name: str, parameters: list[tuple[str, str]], dynamic_bytes: int) -> Retargeted:
    """The text of a kernel, whose parameters have these types and names, for the processor.

    `dynamic_bytes` is the size of shared memory that the launch gives. NotOnCpu where an instruction has no meaning.
    """
    text = re.sub(r"^(?:target|declare|attributes|source_filename) .*\n", "", llvm_ir, flags=re.MULTILINE)
    kernel = next((match for match in _KERNEL.finditer(text) if match[1] == name), None)
    assert kernel is not None, f"no kernel {name} in the text:\n{llvm_ir}"
    heads = _without_spaces(_KERNEL.sub("", _SHARED.sub("", text)))
    shared = next((match for match in _SHARED.finditer(text) if f"{match[1]}" in kernel[2]), None)
    body = kernel[2]
    if "ptrtoint ptr addrspace(3)" in body or "inttoptr i32" in body:
        raise NotOnCpu("an address of shared memory as a number")
    size = 0
    if shared is not None:
        size = int(shared[2]) or dynamic_bytes
        body = body.replace(shared[1], "@x.shared")
        heads += f"@x.shared = global [{size} x i8] zeroinitializer, align 1024\n"
    body = _OWN.sub("@x.", without_assembly(_without_spaces(body)))
    body = re.sub(r"(call .*\)) #\d+", r"\1", body)
    body = _numeric(body)
    body, _, assembly = body.partition("define ")
    types = [_without_spaces(type) for type, _ in parameters]
    names = [name or str(index) for index, (_, name) in enumerate(parameters)]
    taken = ", ".join(f"{type} %{name}" for type, name in zip(types, names, strict=True))
    loads = "".join(
        f"  %p{index} = getelementptr i64, ptr %arguments, i32 {index}\n  %v{index} = load {type}, ptr %p{index}\n"
        for index, type in enumerate(types)
    )
    given = ", ".join(f"{type} %v{index}" for index, type in enumerate(types))
    whole = _linked(
        f"{heads}define ptr @x.kernel({taken}) presplitcoroutine {{\n{_coroutine(body)}}}\n"
        f"{'define ' if assembly else ''}{assembly}{_START.format(loads=loads, given=given)}"
        f"declare ptr @aligned_alloc(i64, i64)\ndeclare void @free(ptr)\n"
    )
    return Retargeted(whole, "x.shared" if shared is not None else None, size)


def _without_spaces(text: str) -> str:
    """Without state spaces; casts between them become casts of a pointer to itself."""
    text = re.sub(r" ?\baddrspace\(\d+\)", "", text)
    text = re.sub(r"addrspacecast \(ptr (\S+) to ptr\)", r"\1", text)
    return text.replace("addrspacecast ptr", "bitcast ptr")


def _numeric(body: str) -> str:
    """Arithmetic that a processor does in another way, or that would end the process, as calls of the library."""

    def conversion(match: re.Match[str]) -> str:
        sign, source, value, result = match.groups()
        if source not in ("float", "double") or result not in _LETTERS:
            raise NotOnCpu(match[0])
        letters = f"{source[0]}2{'u' if sign == 'u' else ''}{_LETTERS[result]}"
        return f"call {result} @x.{letters}.rz({source} {value})"

    body = _CONVERSION.sub(conversion, body)
    body = _DIVISION.sub(r"call \2 @x.\1.\2(\2 \3, \2 \4)", body)
    body = re.sub(r"@llvm\.(max|min)(?:imum)?num\.", r"@x.\1num.", body)
    return re.sub(r"@llvm\.(fma\.(?:v2)?b?f16|copysign\.(?:v2)?bf16)\b", r"@x.\1", body)


def _coroutine(body: str) -> str:
    """The blocks of a kernel, which suspends at barriers and at its end."""
    lines = body.splitlines()
    label, number = "", 0
    found = [] if _LABEL.match(lines[0]) else [_BEGIN]
    last: dict[str, str] = {}  # the part in which a block ends that a barrier parts
    for line in lines:
        if match := _LABEL.match(line):
            label = match[1]
            found += [f"{line}\n"] if found else [f"{line}\n", _BEGIN]
            continue
        if _BARRIER in line:
            barrier = line.partition(_BARRIER)[2].partition(")")[0]
            found.append(_SUSPEND.format(barrier=barrier, number=number))
            last[label] = f"x.resumed.{number}"
            number += 1
        elif line.strip() == "ret void":
            found.append("  br label %x.returned\n")
        else:
            found.append(f"{line}\n")

    def incoming(match: re.Match[str]) -> str:
        return f", %{last.get(match[1], match[1])} ]"

    return "".join(re.sub(r", %(\S+) \]", incoming, line) if " = phi " in line else line for line in found) + _END


def _linked(text: str) -> str:
    """The text with what it needs of the library. NotOnCpu for what is neither there nor an intrinsic of LLVM."""
    if match := re.search(r'\basm [\w ]*"\s*(\S*).*"', text):
        raise NotOnCpu(match[1] or "assembly")
    missing = [] if re.search(r"\bhalf\b|\bbfloat\b", text) is None else list(CONVERSIONS)
    missing += _USED.findall(text)
    defined = set(_DEFINED.findall(text))
    while missing:
        if (name := missing.pop()) in defined:
            continue
        if name not in LIBRARY:
            raise NotOnCpu(name.removeprefix("x."))
        defined.add(name)
        text += LIBRARY[name]
        missing += _USED.findall(LIBRARY[name])
    return text
