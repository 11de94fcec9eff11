# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Source lines as LLVM debug metadata, which becomes PTX's `.file` and `.loc` directives.

Directives alone are written, no debug sections: profilers and cuda-gdb map machine code to `.cute` lines,
and the code itself does not change (LLVM Source Level Debugging, DICompileUnit, DebugDirectivesOnly).
"""

import re
from collections.abc import Callable
from pathlib import PurePath

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation

from .text import quote

_UNQUOTABLE = re.compile(r'["\\\x00-\x1f\x7f]')  # NVPTX copies a file's name into `.file "..."` as it is


class LineInfo:
    """The metadata nodes of one module's source positions. `add` appends a node and returns its reference."""

    def __init__(self, add: Callable[[str], str]) -> None:
        self._add = add
        self._files: dict[str, str] = {}
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
        return self._add(
            f"distinct !DISubprogram(name: {quote(name)}, scope: {file}, file: {file}, line: {line}, "
            f"scopeLine: {line}, type: {kind}, unit: {self._unit}, spFlags: DISPFlagDefinition)"
        )

    def suffix(self, op: Operation, scope: str) -> str:
        """The suffix of the operation's instructions: `, !dbg !7`, or nothing without a scope."""
        if not scope:
            return ""
        location = op.location
        known = isinstance(location, FileLineColLoc)
        line, column = (location.line.data, location.column.data) if known else (0, 0)
        key = (scope, line, column)
        node = self._locations.get(key)
        if node is None:
            column = min(column, 0xFFFF)  # LLVM keeps 16 bits of a column
            node = self._add(f"!DILocation(line: {line}, column: {column}, scope: {scope})")
            self._locations[key] = node
        return f", !dbg {node}"

    def _file(self, name: str) -> str:
        if name not in self._files:
            path = PurePath(_UNQUOTABLE.sub("_", name))
            text = f"!DIFile(filename: {quote(path.name)}, directory: {quote(str(path.parent))})"
            self._files[name] = self._add(text)
        return self._files[name]
