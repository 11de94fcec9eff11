# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The language server: requests of editors by the Language Server Protocol, answered from a `Document`."""

from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from urllib.parse import unquote

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path
from pygls.workspace import TextDocument

from tilefold.base.errors import Code, TilefoldError
from tilefold.compiler.frontend.diagnostics import Diagnostic, Severity
from tilefold.compiler.frontend.source import check_text, read_text
from tilefold.tools.editing.completion import MAX_WORDS, completions
from tilefold.tools.editing.connection import Connection
from tilefold.tools.editing.document import Document, Occurrence
from tilefold.tools.editing.hover import hover
from tilefold.version import VERSION

_SEVERITIES = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.REMARK: lsp.DiagnosticSeverity.Information,
    Severity.NOTE: lsp.DiagnosticSeverity.Hint,
}
_KINDS = {
    "value": lsp.CompletionItemKind.Variable,
    "symbol": lsp.CompletionItemKind.Function,
    "type": lsp.CompletionItemKind.Class,
    "parameter": lsp.CompletionItemKind.Constant,
    "atom": lsp.CompletionItemKind.EnumMember,
    "operation": lsp.CompletionItemKind.Method,
    "dialect": lsp.CompletionItemKind.Module,
}
_SYMBOLS = {"@": lsp.SymbolKind.Function, "!": lsp.SymbolKind.Class, "#": lsp.SymbolKind.Constant}


@lru_cache(maxsize=8)
def _document(name: str, text: str) -> Document:
    return Document(name, text)


def make_server() -> LanguageServer:
    """A server that has opened no file yet."""
    server = LanguageServer("tilefold", VERSION, protocol_cls=Connection)

    def of(uri: str) -> tuple[TextDocument, Document]:
        """The text of a file that is open in the editor, or lies on the disk. TilefoldError as `read_text`."""
        text = server.workspace.text_documents.get(unquote(uri)) or _unopened(uri)
        name = text.filename or uri
        check_text(name, text.source)
        return text, _document(name, text.source)

    def publish(uri: str, *, deep: bool) -> None:
        try:
            text, document = of(uri)
        except TilefoldError as error:
            if unquote(uri) not in server.workspace.text_documents:
                raise
            whole = lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))
            results = [lsp.Diagnostic(whole, error.message, lsp.DiagnosticSeverity.Error, str(error.code))]
            server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, results))
            return
        faults = document.deep_faults() if deep else document.faults
        places = Places(text)
        results = [_diagnostic(places, fault) for fault in faults]
        server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, results, text.version))

    def _unopened(uri: str) -> TextDocument:
        path = to_fs_path(uri)
        if path is None:
            raise TilefoldError(Code.CLI_READ, f"{uri[:200]!r}: is neither an open document nor a file")
        if not _is_file(path):
            raise TilefoldError(Code.CLI_READ, f"{path[:200]!r}: no such file")
        text = read_text(str(Path(path).absolute()))  # "-" would be the standard input
        return TextDocument(uri, text, position_codec=server.workspace.position_codec)

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: lsp.DidOpenTextDocumentParams) -> None:
        publish(params.text_document.uri, deep=True)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: lsp.DidSaveTextDocumentParams) -> None:
        publish(params.text_document.uri, deep=True)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: lsp.DidChangeTextDocumentParams) -> None:
        publish(params.text_document.uri, deep=False)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: lsp.DidCloseTextDocumentParams) -> None:
        server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(params.text_document.uri, []))

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hovers(params: lsp.HoverParams) -> lsp.Hover | None:
        text, document = of(params.text_document.uri)
        content = hover(document, text.offset_at_position(params.position))
        return None if content is None else lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, content))

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def definition(params: lsp.DefinitionParams) -> lsp.Location | None:
        text, document = of(params.text_document.uri)
        name = document.at(text.offset_at_position(params.position))
        results = None if name is None else document.definition(name)
        return None if results is None else lsp.Location(params.text_document.uri, Places(text).of(results))

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def references(params: lsp.ReferenceParams) -> list[lsp.Location]:
        text, document = of(params.text_document.uri)
        name = document.at(text.offset_at_position(params.position))
        results = [] if name is None else document.uses(name)
        with_it, places = params.context.include_declaration, Places(text)
        return [
            lsp.Location(text.uri, places.of(occurrence)) for occurrence in results if with_it or not occurrence.defines
        ]

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        text, document = of(params.text_document.uri)
        results, places = list[lsp.DocumentSymbol](), Places(text)
        for occurrence in document.occurrences:
            if occurrence.defines and occurrence.name[0] not in "%^":
                kind = _SYMBOLS.get(occurrence.name[0], lsp.SymbolKind.Variable)
                results.append(lsp.DocumentSymbol(occurrence.name, kind, places.of(occurrence), places.of(occurrence)))
        return results

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=list('%@!#."{')))
    def complete(params: lsp.CompletionParams) -> lsp.CompletionList:
        text, document = of(params.text_document.uri)
        offset, places = text.offset_at_position(params.position), Places(text)
        words = completions(document, offset)
        items = [
            lsp.CompletionItem(
                word.text,
                kind=_KINDS[word.kind],
                detail=word.detail or None,
                documentation=word.documentation or None,
                text_edit=lsp.TextEdit(places.span(offset - len(word.typed), offset), word.text),
                filter_text=word.text,
            )
            for word in words
        ]
        return lsp.CompletionList(len(words) == MAX_WORDS, items)

    return server


def _is_file(path: str) -> bool:
    """Whether it is a regular file: a device or a pipe may never end."""
    try:
        return Path(path).is_file()
    except ValueError:  # a NUL character
        return False


def _diagnostic(places: "Places", fault: Diagnostic) -> lsp.Diagnostic:
    place = fault.place
    if place is None:
        where = lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))
    else:
        start = lsp.Position(place.line - 1, place.column - 1)
        where = places.client(lsp.Range(start, lsp.Position(place.line - 1, max(place.end, place.column + 1) - 1)))
    text = f"{fault.message}\nhint: {fault.hint}" if fault.hint else fault.message
    return lsp.Diagnostic(
        where, text, _SEVERITIES[fault.severity], None if fault.code is None else str(fault.code), source="tilefold"
    )


class Places:
    """The places of a text in the units of the client, which may count a character as several."""

    def __init__(self, text: TextDocument) -> None:
        self._codec, self._lines = text.position_codec, [f"{line}\n" for line in text.source.split("\n")]
        self._starts = list(accumulate(map(len, self._lines), initial=0))
        self._is_plain = text.source.isascii()
        self._columns: dict[int, list[int]] = {}

    def of(self, name: Occurrence) -> lsp.Range:
        """The range of a name."""
        return self.span(name.start, name.end)

    def span(self, start: int, end: int) -> lsp.Range:
        """The range between two offsets."""
        return self.client(lsp.Range(self._position(start), self._position(end)))

    def client(self, range: lsp.Range) -> lsp.Range:
        """A range whose columns count characters."""
        return range if self._is_plain else lsp.Range(self._in_units(range.start), self._in_units(range.end))

    def _in_units(self, position: lsp.Position) -> lsp.Position:
        """A position whose column counts characters. pygls counts those before it anew, which takes seconds for many
        names on one line.
        """
        number = position.line
        if number >= len(self._lines):
            return lsp.Position(len(self._lines), 0)
        if number not in self._columns:
            line = self._lines[number]
            units = {character: self._codec.client_num_units(character) for character in set(line)}
            self._columns[number] = list(accumulate((units[character] for character in line), initial=0))
        columns = self._columns[number]
        return lsp.Position(number, columns[min(position.character, len(columns) - 1)])

    def _position(self, offset: int) -> lsp.Position:
        line = bisect_right(self._starts, offset, hi=len(self._lines)) - 1
        return lsp.Position(line, offset - self._starts[line])
