# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inline assembly of accesses, conversions and atomic operations as functions of LLVM IR, for `.cpu`.

The emission writes assembly for what LLVM has no intrinsic for. Cache hints mean nothing on a processor.
"""

import re

_CALL = re.compile(
    r"call (?P<result>void|\{[^}]*\}|\w+) asm (?:sideeffect )?(?:convergent )?"
    r'"(?P<text>(?:[^"\\]|\\.)*)", "[^"]*"\((?P<given>.*)\)'
)
_LOAD = re.compile(r"ld\.global[\w.:]*?(?:\.v(\d))?\.[bus](\d+) .*, \[\$\d+\](?:, \$\d+)?;")
_STORE = re.compile(r"st\.global[\w.:]*?(?:\.v(\d))?\.[bus](\d+) \[\$0\], .*;")
_COPY = re.compile(r"cp\.async\.(ca|cg)\.shared\.global[\w.:]* \[\$0\], \[\$1\], (\d+)(, \$2)?;")

_CONVERT = re.compile(r"(cvt\.(?:rn\.satfinite\.e\dm\dx2\.f32|rn\.f16x2\.e\dm\dx2|rna\.tf32\.f32)) [$0-9, ]*;")
_APPROXIMATE = re.compile(r"(\w+\.approx)(?:\.ftz)?\.f32 \$0, \$1;")
_ATOMIC = re.compile(
    r"(?:atom|red)\.(?:\w+\.)*?(?:global|shared)(?:::cta)?"
    r"\.(?P<op>add|and|or|xor|exch|min|max)\.(?P<type>[busf](?:32|64)) .*;"
)
_STEPS = {"add": "add", "and": "and", "or": "or", "xor": "xor", "exch": "xchg"}


def without_assembly(text: str) -> str:
    """The text with calls of functions, which are defined at its end, in place of what of its assembly is known."""
    functions: dict[tuple[str, str, str], str] = {}

    def replace(call: re.Match[str]) -> str:
        operands = _operands(call["given"])
        types = [operand.rpartition(" ")[0] for operand in operands]
        body = _body(call["text"], call["result"], types)
        if body is None:
            return call[0]
        names = ", ".join(f"{type} %p{index}" for index, type in enumerate(types))
        key = (call["text"], call["result"], names)
        name = f"@x.assembly.{len(functions)}"
        if key not in functions:
            functions[key] = f"define {call['result']} {name}({names}) {{\n{body}}}\n"
        name = functions[key].split("(")[0].split()[-1]
        return f"call {call['result']} {name}({', '.join(operands)})"

    return _CALL.sub(replace, text) + "".join(functions.values())


def _operands(given: str) -> list[str]:
    """The operands of a call, whose types and values may have commas in brackets."""
    found, depth = [""], 0
    for character in given:
        depth += (character in "(<{[") - (character in ")>}]")
        if character == "," and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return [operand.strip() for operand in found]


def _body(text: str, result: str, types: list[str]) -> str | None:
    if load := _LOAD.fullmatch(text):
        return _load(int(load[1] or 1), int(load[2]), result)
    if store := _STORE.fullmatch(text):
        return _store(int(store[1] or 1), int(store[2]), types)
    if convert := _CONVERT.fullmatch(text):
        given = ", ".join(f"{type} %p{index}" for index, type in enumerate(types))
        return f"  %r = call {result} @x.{convert[1]}({given})\n  ret {result} %r\n"
    if function := _APPROXIMATE.fullmatch(text):
        return f"  %r = call float @x.{function[1]}.f32(float %p0)\n  ret float %r\n"
    if atomic := _ATOMIC.fullmatch(text):
        return _atomic(atomic["op"], atomic["type"], result, types)
    copy = _COPY.fullmatch(text)
    if copy and types[0].startswith("ptr"):
        given = "ptr %p0, ptr %p1, i32 %p2" if copy[3] else "ptr %p0, ptr %p1"
        function = f"@x.cp.async.{copy[1]}.shared.global.{copy[2]}{'.s' if copy[3] else ''}"
        return f"  call void {function}({given})\n  ret void\n"
    return None


def _atomic(op: str, type: str, result: str, types: list[str]) -> str | None:
    """One of PTX's atomic operations; threads run one after the other, so that any order is right."""
    step = _STEPS.get(op) or f"{'u' if type[0] in 'bu' else ''}{op}"
    if type.startswith("f"):
        step = f"f{step}"
    old = f"  %r = atomicrmw {step} ptr %p0, {types[1]} %p1 monotonic\n"
    return f"{old}  ret {'void' if result == 'void' else f'{result} %r'}\n"


def _load(count: int, bits: int, result: str) -> str:
    register, whole, lines = f"i{max(bits, 16)}", "poison", ""
    for index in range(count):
        lines += (
            f"  %a{index} = getelementptr i{bits}, ptr %p0, i32 {index}\n  %m{index} = load i{bits}, ptr %a{index}\n"
        )
        lines += f"  %r{index} = {'zext' if bits == 8 else 'bitcast'} i{bits} %m{index} to {register}\n"
        if count > 1:
            lines += f"  %w{index} = insertvalue {result} {whole}, {register} %r{index}, {index}\n"
            whole = f"%w{index}"
    return lines + f"  ret {result} {whole if count > 1 else '%r0'}\n"


def _store(count: int, bits: int, types: list[str]) -> str:
    lines = ""
    for index in range(count):
        conversion = f"{'trunc' if bits == 8 else 'bitcast'} {types[index + 1]} %p{index + 1} to i{bits}"
        lines += f"  %a{index} = getelementptr i{bits}, ptr %p0, i32 {index}\n  %m{index} = {conversion}\n"
        lines += f"  store i{bits} %m{index}, ptr %a{index}\n"
    return lines + "  ret void\n"
