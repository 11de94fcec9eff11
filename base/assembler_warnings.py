# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Messages by which NVIDIA's assembler says that machine code is slower than the PTX asks for.

ptxas, nvJitLink and the driver write them into their logs as information, `ptxas info : (C7512) ...`, and assemble the
kernel all the same. The causes were found by provoking each message with ptxas 13.0 and 13.5.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .errors import Code, TilefoldError

_MESSAGE = re.compile(r"\((C75\d\d)\) (.*)")
_KERNEL = re.compile(r"\bfunction '([^']+)'")
_LINE = re.compile(r"\bline (\d+)")
_WORDS = re.compile(r"serialized|'setmaxnreg' ignored|is injected")
"""The words of every message by which registers are not handed over, or instructions that should overlap do not."""

_WITHOUT_CALLS = "take printf and other calls out of it, such as quotients and roots of f64"
_KNOWN: Mapping[str, tuple[str, str]] = MappingProxyType({
    "C7504": ("setmaxnreg is dropped from relocatable code", "assemble with ptxas or the driver, not with nvJitLink"),
    "C7508": (
        "setmaxnreg is dropped, since the registers of the launch are not known",
        "give the kernel min_blocks(1) or max_registers(N)",
    ),
    "C7509": ("wgmma runs one at a time, because the kernel calls a function", _WITHOUT_CALLS),
    "C7510": ("wgmma runs one at a time, because a call precedes its wait", _WITHOUT_CALLS),
    "C7511": (
        "wgmma runs one at a time, because there are not enough registers",
        "use smaller tiles (at most 64 x 256 of f32 in a warpgroup), setmaxnreg and min_blocks(1)",
    ),
    "C7513": (
        "wgmma runs one at a time, because registers of its operand A are written while it runs",
        "write them after wait_group 0",
    ),
    "C7514": (
        "wgmma runs one at a time, because accumulators are read or moved while it runs, as over a loop's end",
        "commit and wait within one iteration, and use the accumulators after the wait",
    ),
    "C7515": (
        "wgmma runs one at a time, because accumulators are written while it runs",
        "write them before wgmma.fence or after the wait",
    ),
    "C7516": (
        "wgmma runs one at a time, because fence, wgmma, commit and wait are not in order on every path",
        "let all warps take the same path from the fence to the wait",
    ),
    "C7517": (
        "a wait is added, because accumulators are used before theirs",
        "use them after wait_group, and not under a condition that differs between warps",
    ),
    "C7519": (
        "the assembler adds a wgmma.fence, because none directly precedes a multiplication",
        "write one there, after the waits for its operands",
    ),
})  # fmt: skip
_ALIKE = {"C7512": "C7511", "C7518": "C7516"}
"""Messages with the cause and the cure of others."""
_HARMLESS = frozenset({"C7519"})
"""Messages about instructions that cost next to nothing."""
_CALLS = frozenset({"C7509", "C7510"})
_ALLOWED = _CALLS | _HARMLESS
"""These, and messages about calls, which the program itself has."""


@dataclass(frozen=True, slots=True)
class AssemblerWarning:
    """A message: its `code`, the `kernel` and the `line` of the PTX that it names (or "" and 0), the cause and a cure.

    `refused` says that the lost speed counts as an error, unless it is allowed.
    """

    code: str
    kernel: str
    line: int
    cause: str
    cure: str
    refused: bool

    def __str__(self) -> str:
        kernel = f"kernel '{self.kernel}': " if self.kernel else ""
        return f"{kernel}{self.cause} (the assembler's {self.code})"

    @property
    def harmless(self) -> bool:
        """Whether the kernel is hardly slower: a remark is enough, and launches do not warn."""
        return self.code in _HARMLESS

    @property
    def is_of_calls(self) -> bool:
        """Whether calls are the cause, which it does not name."""
        return self.code in _CALLS

    @property
    def remark(self) -> str:
        """The message with its cure."""
        return f"{self}; {self.cure}" if self.cure else str(self)

    @property
    def hint(self) -> str:
        """The hint of the error that it counts as."""
        return f"{self.cure or 'look the message up'}; TILEFOLD_ALLOW_SLOWER=1 takes the code as it is"


def assembler_warnings(log: str) -> tuple[AssemblerWarning, ...]:
    """The messages in a log of an assembler, each once. One that is not known is given in the assembler's words."""
    return tuple(dict.fromkeys(_parse(*match.groups()) for match in _MESSAGE.finditer(log)))


def first_refused(log: str, allowed: bool) -> AssemblerWarning | None:
    """The first message of a log that counts as an error; None without one, or if `allowed`."""
    return None if allowed else next((message for message in assembler_warnings(log) if message.refused), None)


def check_speed(log: str, allowed: bool) -> None:
    """TilefoldError (E2303) for the first message of a log that counts as an error, unless these are `allowed`."""
    if (first := first_refused(log, allowed)) is not None:
        raise TilefoldError(Code.ASSEMBLE_SLOWER, str(first), first.hint)


def _parse(code: str, words: str) -> AssemblerWarning:
    kernel, line = _KERNEL.search(words), _LINE.search(words)
    cause, cure = _KNOWN.get(_ALIKE.get(code, code), (words, ""))
    refused = code not in _ALLOWED and (code in _KNOWN or code in _ALIKE or _WORDS.search(words) is not None)
    return AssemblerWarning(code, kernel[1] if kernel else "", int(line[1]) if line else 0, cause, cure, refused)
