# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads PTX text: modules, their variables and functions (PTX ISA, Syntax, and Directives).

The text may come from anywhere. All loops advance in it, nesting is bounded, and everything that is not understood is
an error with its place.
"""

from dataclasses import replace

from ...base.errors import Code
from .statements import StatementParser
from .syntax import Function, Module, Parameter
from .tokens import Text

_LINKAGE = (".visible", ".extern", ".weak", ".common")
_BEGIN_OTHERS = (*_LINKAGE, ".entry", ".func", ".file", ".global", ".const", ".shared")
"""The directives with which another part of a module begins."""
_IGNORED = (
    ".pragma",
    ".noreturn",
    ".unified",
    ".minnctapersm",
    ".maxnreg",
    ".abi_preserve",
    ".ptr",
    ".explicitcluster",
)


def parse_ptx(text: str, file: str = "<ptx>") -> Module:
    """The module of a PTX text; `file` names it in messages. PtxError (E1008) for a malformed one."""
    return _ModuleParser(Text(text, file)).module()


class _ModuleParser(StatementParser):
    """A recursive-descent parser of a module."""

    def module(self) -> Module:
        version = target = ""
        files: dict[int, str] = {}
        variables = self.of_module
        functions: dict[str, Function] = {}
        aliases, options = dict[str, str](), list[str]()
        while self.token.kind != "end":
            word = self.token.text
            if word == ".version":
                self.advance()
                version = self.advance().text
            elif word == ".target":
                self.advance()
                target, *options = self._words()
            elif word == ".address_size":
                self.advance()
                if self.integer() != 64:
                    self.fail("addresses of 32 bits are not supported", hint="compile for 64-bit addresses")
            elif word == ".file":
                self.advance()
                number = self.integer()
                files[number] = self.advance().text.strip('"')
                while self.accept(","):
                    self.integer()
            elif word == ".section":
                self._skip_section()
            elif word == ".pragma":
                self.skip_statement()
            elif self.accept(".alias"):
                name = self.word("the name of a function")
                self.expect(",")
                aliases[name] = self.word("the name of a function")
                self.expect(";")
            else:
                linkage: list[str] = []
                while self.token.text in _LINKAGE:
                    linkage.append(self.advance().text)
                if self.token.text in (".entry", ".func"):
                    function = self._function(" ".join(linkage))
                    if function.body is not None or function.name not in functions:
                        functions[function.name] = function
                else:
                    for variable in self.variables():
                        variables[variable.name] = replace(variable, linkage=" ".join(linkage))
        return Module(version, target, files, variables, functions, aliases, tuple(options))

    def _words(self) -> list[str]:
        """One or more tokens between commas."""
        words = [self.advance().text]
        while self.accept(","):
            words.append(self.advance().text)
        return words

    def _skip_section(self) -> None:
        """Debugging information."""
        self.advance()
        self.advance()
        depth = 0
        while self.token.kind != "end":
            text = self.advance().text
            depth += (text == "{") - (text == "}")
            if depth == 0 and text == "}":
                return
        self.fail("the section does not end")

    def _function(self, linkage: str) -> Function:
        is_entry = self.advance().text == ".entry"
        results = self._parameters() if not is_entry and self.token.text == "(" else ()
        place = self.place()
        name = self.word("the name of a function")
        parameters = self._parameters() if self.token.text == "(" else ()
        sizes: dict[str, tuple[int, int, int]] = {}
        begin = self.token.at
        while self.token.kind == "directive" and self.token.text not in _BEGIN_OTHERS:
            word = self.advance().text
            if word in (".reqntid", ".maxntid", ".reqnctapercluster", ".maxclusterrank"):
                sizes[word] = self._three()
            elif word in _IGNORED:
                self._skip_numbers()
                if word == ".pragma":
                    self.accept(";")
            else:
                self.fail(f"unknown directive '{word}' of a function")
        directives = linkage, " ".join(self.text_from(begin).split())
        if self.accept(";") or self.token.text in _BEGIN_OTHERS:  # the first versions of PTX have no semicolon here
            return Function(name, is_entry, parameters, place, results=results, directives=directives)
        body, registers, variables = self.body((*results, *parameters))
        return Function(
            name, is_entry, parameters, place, body, registers, variables,
            sizes.get(".reqntid"), sizes.get(".reqnctapercluster"), results, directives,
        )  # fmt: skip

    def _skip_numbers(self) -> None:
        while self.token.kind in ("integer", "string") or self.token.text == ",":
            self.advance()

    def _three(self) -> tuple[int, int, int]:
        sizes = [self.integer()]
        while self.accept(","):
            sizes.append(self.integer())
        if len(sizes) > 3:
            self.fail("a size has at most three numbers")
        x, y, z = (*sizes, 1, 1)[:3]
        return x, y, z

    def _parameters(self) -> tuple[Parameter, ...]:
        self.expect("(")
        parameters: list[Parameter] = []
        while not self.accept(")"):
            place = self.place()
            is_register = self.token.text == ".reg"
            if self.token.text in (".param", ".reg"):
                self.advance()
            type, align, begin = "", 0, self.token.at
            while self.token.kind == "directive":
                word = self.advance().text[1:]
                if word == "align":
                    align = self.integer()
                elif self.is_type(word):
                    type = word
                elif word not in ("ptr", "global", "shared", "const", "local", "generic", "space"):
                    self.fail(f"unknown directive '.{word}' of a parameter", Code.PTX_SYNTAX)
            if not type:
                self.fail("the parameter has no type")
            attributes = " ".join(self.text_from(begin).split())
            name = self.word("the name of a parameter")
            size = self.type_bytes(type)
            if is_structure := self.accept("["):
                size *= 0 if self.token.text == "]" else self.integer()
                self.expect("]")
            parameters.append(Parameter(name, type, size, align, place, is_structure, is_register, attributes))
            if self.token.text != ")":
                self.expect(",")
        return tuple(parameters)
