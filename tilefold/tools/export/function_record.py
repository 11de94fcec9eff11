# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Host functions as bytes within object files and libraries: their parameters, their kernels, and how they launch them.

The bytes can lie anywhere in a file; a mark tells where they begin.
"""

import json
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from tilefold.base.errors import Code, TilefoldError
from tilefold.runtime.compiled.artifact import Build
from tilefold.version import VERSION

_MARK = bytes.fromhex("9e74696c65666f6c64206675c3b10a1f")
_HEAD = struct.Struct("<16sQ")
_ALIGN = 16


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """A launch: the number of its kernel, for each parameter the tensor's name or the number of a value, the values
    that are its grid, the name of its stream, and its attributes.
    """

    kernel: int
    arguments: dict[str, str | int]
    grid: tuple[int, int, int]
    stream: str | None
    cluster: tuple[int, int, int] | None
    use_pdl: bool
    cooperative: bool


@dataclass(frozen=True, slots=True)
class FunctionRecord:
    """A host function that is compiled.

    `parameters` are its names, `optional` those of them that are None, and `streams` those of its streams. `host` is a
    program whose kernel takes the tensors and numbers, of the types of elements `dtypes`, and stores values into its
    last argument, of which those in `guards` must be certain numbers. Integers at the places `symbols` are equal. The
    kernels are `texts`, compiled as `builds`.
    """

    name: str
    parameters: tuple[str, ...]
    optional: tuple[str, ...]
    streams: tuple[str, ...]
    dtypes: dict[str, str]
    host: str
    guards: tuple[tuple[int, int], ...]
    symbols: tuple[tuple[tuple[str, int], ...], ...]
    launches: tuple[LaunchRecord, ...]
    texts: tuple[str, ...]
    builds: tuple[Build, ...]

    def to_bytes(self) -> tuple[bytes, list[int]]:
        """The record as bytes, and where in them the code of each kernel is: machine code, or PTX and a byte 0."""
        record = {name: getattr(self, name) for name in self.__slots__ if name != "builds"}
        record["launches"] = [asdict(launch) for launch in self.launches]
        body, codes, places = b"", list[int](), list[tuple[int, int]]()
        for build in self.builds:
            made = build.to_bytes()
            code = build.cubin or build.ptx.encode()  # the end of `made`
            body += bytes(-(len(body) + len(made) - len(code)) % _ALIGN)
            places.append((len(body), len(made)))
            body += made + b"\0"
            codes.append(len(body) - 1 - len(code))
        head = json.dumps({**record, "version": VERSION, "builds": places}).encode()
        head += b" " * (-(_HEAD.size + len(head)) % _ALIGN)
        return _HEAD.pack(_MARK, len(head)) + head + body, [_HEAD.size + len(head) + code for code in codes]


def records_in(data: bytes, name: str) -> Iterator[FunctionRecord]:
    """The functions in a file of a name. TilefoldError (E4001) for one of another version, or that is damaged."""
    at = data.find(_MARK)
    while at >= 0:
        try:
            record = _record(memoryview(data)[at:])
        except (ValueError, TypeError, KeyError, struct.error) as error:
            message = f"{name}: the function at byte {at} is damaged: {error}"
            raise TilefoldError(Code.CLI_READ, message, "export it again") from None
        if isinstance(record, str):
            message = f"{name}: the function at byte {at} is of tilefold {record}, and this is {VERSION}"
            raise TilefoldError(Code.CLI_READ, message, "export it again")
        yield record
        at = data.find(_MARK, at + 1)


def _record(data: memoryview) -> FunctionRecord | str:
    """The record that the bytes begin with; of another version, that."""
    _, length = _HEAD.unpack_from(data)
    end = _HEAD.size + length
    given = json.loads(bytes(data[_HEAD.size : end]))
    if (version := given.pop("version")) != VERSION:
        return str(version)
    builds = tuple(
        Build.from_bytes(bytes(data[end + begin : end + begin + size])) for begin, size in given.pop("builds")
    )
    launches = tuple(LaunchRecord(**launch) for launch in given.pop("launches"))
    guards = tuple((value, number) for value, number in given.pop("guards"))
    symbols = tuple(tuple((name, place) for name, place in places) for places in given.pop("symbols"))
    return FunctionRecord(**given, builds=builds, launches=launches, guards=guards, symbols=symbols)
