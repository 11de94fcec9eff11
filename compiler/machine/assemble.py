# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX to machine code by nvJitLink, in process, for any target and without a driver or GPU.

The resources of each kernel (registers, spills, stack, shared memory) are read from the assembler's log. Machine code
is an ELF file with a section `.text.<kernel>` for each kernel.
"""

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from ...base.errors import Code, TilefoldError
from ...base.target import Target
from ...dialects.ptx import InlineOp
from ...passes.errors import LoweringError


class AssembleError(TilefoldError):
    """The assembler refused the PTX, or is not installed. `log` is its output, with line numbers of the PTX."""

    def __init__(self, code: Code, message: str, hint: str = "", log: str = "") -> None:
        super().__init__(code, message, hint)
        self.log = log


@dataclass(frozen=True, slots=True)
class KernelResources:
    """A kernel's resources: registers per thread; bytes of spills, stack and static shared memory; bytes of code."""

    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    static_shared: int
    code: int


@dataclass(frozen=True, slots=True)
class Cubin:
    """Machine code, the resources of each kernel in it, and the assembler's log."""

    code: bytes
    kernels: Mapping[str, KernelResources]
    log: str


def load_binding(
    name: str, version: str, subject: str, hint: str, code: Code, error: type[TilefoldError] = TilefoldError
) -> ModuleType:
    """A binding of cuda-python, with its library loaded, which the function `version` needs. An `error` with
    this code and hint, if either is not installed; it begins with the `subject`.
    """
    try:
        binding = import_module(f"cuda.bindings.{name}")
        getattr(binding, version)()
    except (ImportError, RuntimeError) as reason:  # cuda-python reports a missing library as a RuntimeError
        raise error(code, f"{subject} cannot be loaded: {str(reason).splitlines()[0]}", hint) from reason
    return binding


@cache
def _load_nvjitlink() -> Any:
    """The binding of nvJitLink. AssembleError if it is missing."""
    hint = "`pip install nvidia-nvjitlink cuda-python` installs it on Linux and Windows; --emit ptx needs neither"
    subject = "nvJitLink, which assembles PTX,"
    return load_binding("nvjitlink", "version", subject, hint, Code.ASSEMBLE_UNAVAILABLE, AssembleError)


def assemble(ptx: str, target: Target, options: Sequence[str] = ()) -> Cubin:
    """Assembles PTX for the target, with options of ptxas that nvJitLink hands on. AssembleError with the assembler's
    message where it refuses the text.
    """
    link = _load_nvjitlink()
    # results from nvJitLink's own cache come without the log
    given = [f"-arch={target.arch}", "-verbose", "-no-cache", *(f"-Xptxas={option}" for option in options)]
    handle = link.create(len(given), given)
    try:
        data = ptx.encode()
        try:
            link.add_data(handle, link.InputType.PTX, data, len(data), "kernel.ptx")
            link.complete(handle)
        except link.nvJitLinkError as error:
            raise refusal(target, _log(handle, link.get_error_log_size, link.get_error_log)) from error
        code = bytearray(link.get_linked_cubin_size(handle))
        link.get_linked_cubin(handle, code)
        log = _log(handle, link.get_info_log_size, link.get_info_log)
    finally:
        link.destroy(handle)
    return cubin_of(bytes(code), log)


def refusal(target: Target, log: str, hint: str = "") -> AssembleError:
    """The error for PTX that an assembler refuses, from its log."""
    first = next((line for line in log.splitlines() if "error" in line or "fatal" in line), "it gives no reason")
    hint = hint or "please report this, with the text that --emit=ptx prints"
    return AssembleError(Code.ASSEMBLE_REFUSED, f"the assembler rejected the PTX for {target}: {first}", hint, log)


def cubin_of(code: bytes, log: str) -> Cubin:
    """Machine code with the resources of its kernels from the assembler's log."""
    return Cubin(code, parse_log(log, read_code_sizes(code)), log)


def _log(handle: int, size_of: Any, read: Any) -> str:
    size = size_of(handle)
    if not size:
        return ""
    buffer = bytearray(size)
    read(handle, buffer)
    return buffer.decode("utf-8", "replace").rstrip("\0 \n")


_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '[^']+'")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def parse_log(log: str, code: Mapping[str, int]) -> dict[str, KernelResources]:
    """Reads the assembler's verbose log (`ptxas -v`); `code` has the bytes of machine code of each kernel."""
    kernels: dict[str, KernelResources] = {}
    parts = _ENTRY.split(log)  # text before the first kernel, then name and text of each
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        own = text.partition("\ninfo ")[0]  # the linker repeats itself after
        spills, registers, shared = _SPILLS.search(own), _REGISTERS.search(own), _SHARED.search(own)
        stack, stores, loads = (int(n) for n in spills.groups()) if spills else (0, 0, 0)
        kernels[name] = KernelResources(
            registers=int(registers[1]) if registers else 0,
            spill_stores=stores,
            spill_loads=loads,
            stack=stack,
            static_shared=int(shared[1]) if shared else 0,
            code=code.get(name, 0),
        )
    return kernels


_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")  # Elf64_Ehdr
_SECTION = struct.Struct("<IIQQQQIIQQ")  # Elf64_Shdr
_TEXT = ".text."


def read_code_sizes(cubin: bytes) -> dict[str, int]:
    """The bytes of machine code of each kernel; empty unless `cubin` is a 64-bit little-endian ELF file."""
    if len(cubin) < _HEADER.size or not cubin.startswith(b"\x7fELF\x02\x01"):
        return {}
    header = _HEADER.unpack_from(cubin)
    offset, entry_size, count, names_index = header[6], header[11], header[12], header[13]
    if entry_size != _SECTION.size or offset + count * entry_size > len(cubin) or names_index >= count:
        return {}
    sections = [_SECTION.unpack_from(cubin, offset + index * entry_size) for index in range(count)]
    names = cubin[sections[names_index][4] :][: sections[names_index][5]]
    sizes: dict[str, int] = {}
    for section in sections:
        name = names[section[0] : names.find(b"\0", section[0])].decode("ascii", "replace")
        if name.startswith(_TEXT):
            sizes[name.removeprefix(_TEXT)] = section[5]
    return sizes


_INLINE = re.compile(r"// begin inline asm\n(.*?)\n\s*// end inline asm\n", re.DOTALL)
_REFUSED = re.compile(r"line (\d+); (?:error|fatal)\s*: (.*)")
_PLACE = re.compile(r"\\\$(\d+|\\\$)")  # `$1` or `$$`, as re.escape leaves it


def inline_refusal(error: AssembleError, ptx: str, target: Target, texts: Sequence[InlineOp]) -> TilefoldError:
    """The error of an assembler as an error of the operation among `texts` that has the refused line; the error itself
    if none of them has it. `texts` are in the order of the program. LLVM passes them on between two comments; only the
    assembler reads them, and names a line of the PTX.
    """
    refused = _REFUSED.search(error.log)
    if refused is None or not texts:
        return error
    line = int(refused[1])
    before = [text for text in _INLINE.finditer(ptx) if _line(ptx, text.start(1)) <= line]
    # a text without its last semicolon is refused at the line that follows its comment
    is_inside = bool(before) and line <= _line(ptx, before[-1].end())
    ops = [op for op in texts if _becomes(op, before[-1])] if is_inside else []
    if not ops:
        hint = "check that each text of `ptx.inline` closes the braces and comments that it opens"
        return AssembleError(Code.ASSEMBLE_REFUSED, error.message, hint, error.log)
    number = sum(_becomes(ops[0], text) for text in before)  # of several with this text
    message = f"the assembler rejected the text for {target}: {refused[2]}"
    hint = "look up the instruction and the types of its registers in the PTX ISA"
    return LoweringError(Code.ASSEMBLE_REFUSED, message, ops[min(number, len(ops)) - 1], hint)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _becomes(op: InlineOp, text: re.Match[str]) -> bool:
    """Whether LLVM makes this of a text: a register in each place, and the rest as it is, but for space at its ends."""
    pattern = _PLACE.sub(lambda place: r"\$" if place[1] == r"\$" else r"\S+?", re.escape(op.text.data.strip()))
    return re.fullmatch(pattern, text[1].strip()) is not None
