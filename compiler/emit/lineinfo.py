# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Source lines as LLVM debug metadata, which becomes PTX's `.file` and `.loc` directives.

Only directives are written, no debug sections: profilers and cuda-gdb map machine code to the lines of the source,
and the code itself does not change (LLVM Source Level Debugging, DICompileUnit, DebugDirectivesOnly). Files have names
without their folders, so that the same program gives the same text on every machine.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import PurePath

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation

from .types import quote

_UNQUOTABLE = re.compile(r'["\\\x00-\x1f\x7f]')  # NVPTX copies a file's name into `.file "..."` as it is


class FileNames:
    """The names of source files in PTX, with only as many folders as distinguish a file from those before it."""

    def __init__(self) -> None:
        self.paths: dict[str, str] = {}
        """The files by their names in PTX."""
        self._names: dict[str, str] = {}

    def name(self, path: str) -> str:
        """The name of a file, which it keeps."""
        if path not in self._names:
            parts = (".", *PurePath(_UNQUOTABLE.sub("_", path)).parts)
            names = ("/".join(parts[-count:]) for count in range(1, len(parts) + 1))
            name = next(name for name in names if name not in self.paths)
            self._names[path] = name
            self.paths[name] = path
        return self._names[path]


def source_files(entries: Sequence[Operation]) -> dict[str, str]:
    """The files of kernels by their names in the PTX that is written of them."""
    names = FileNames()
    for entry in entries:
        for op in entry.walk():
            if isinstance(op.location, FileLineColLoc):
                names.name(op.location.filename.data)
    return names.paths


class LineInfo:
    """The metadata nodes of one module's source positions. `add` appends a node and returns its reference."""

    def __init__(self, add: Callable[[str], str]) -> None:
        self._add = add
        self._names = FileNames()
        self._files: dict[str, str] = {}
        self._home: dict[str, str] = {}  # by a kernel's scope, the file that its definition is in
        self._scopes: dict[tuple[str, str], str] = {}
        self._locations: dict[tuple[str, int, int], str] = {}
        self._unit = ""
        self._version = add('!{i32 2, !"Debug Info Version", i32 3}')

    def named_metadata(self) -> list[str]:
        """The lines that make the module's debug information known to LLVM; none where no kernel has any."""
        if not self._unit:
            return []
        return [f"!llvm.dbg.cu = !{{{self._unit}}}", f"!llvm.module.flags = !{{{self._version}}}"]

    def function(self, name: str, op: Operation) -> str:
        """The scope of a kernel: a reference for `!dbg` on its definition; empty where its source is not known."""
        location = op.location
        if not isinstance(location, FileLineColLoc):
            return ""
        file = self._file(location.filename.data)
        if not self._unit:
            self._unit = self._add(
                f'distinct !DICompileUnit(language: DW_LANG_C, file: {file}, producer: "tilefold", '
                "isOptimized: true, emissionKind: DebugDirectivesOnly)"
            )
        kind = self._add("!DISubroutineType(types: !{})")
        line = location.line.data
        scope = self._add(
            f"distinct !DISubprogram(name: {quote(name)}, scope: {file}, file: {file}, line: {line}, "
            f"scopeLine: {line}, type: {kind}, unit: {self._unit}, spFlags: DISPFlagDefinition)"
        )
        self._home[scope] = file
        return scope

    def suffix(self, op: Operation, scope: str) -> str:
        """The suffix of the operation's instructions: `, !dbg !7`, or nothing without a scope."""
        if not scope:
            return ""
        location = op.location
        line = column = 0
        if isinstance(location, FileLineColLoc):
            line, column = location.line.data, location.column.data
            scope = self._within(scope, self._file(location.filename.data))
        key = (scope, line, column)
        node = self._locations.get(key)
        if node is None:
            column = min(column, 0xFFFF)  # LLVM keeps 16 bits of a column
            node = self._add(f"!DILocation(line: {line}, column: {column}, scope: {scope})")
            self._locations[key] = node
        return f", !dbg {node}"

    def _within(self, scope: str, file: str) -> str:
        """The scope of a kernel's operations from a file, which may be another than the kernel's."""
        if file == self._home[scope]:
            return scope
        if (scope, file) not in self._scopes:
            self._scopes[scope, file] = self._add(
                f"!DILexicalBlockFile(scope: {scope}, file: {file}, discriminator: 0)"
            )
        return self._scopes[scope, file]

    def _file(self, path: str) -> str:
        if path not in self._files:
            self._files[path] = self._add(f'!DIFile(filename: {quote(self._names.name(path))}, directory: "")')
        return self._files[path]
