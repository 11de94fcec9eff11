# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The language server, as an editor talks with it: over standard input and output of the command."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Mapping, Set
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

from tests.project.tree import ROOT

URI = "file:///kernel.cute"
TEXT = """\
// param N = 64
// param L = "(${N},2):(1,${N})"
!A = !tile.tensor<f32, gmem, align<16>, "${L}">
gpu.module @kernels {
  tile.kernel @scale(%A: !A, %n: i32) threads(32) {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %part = tile.slice %A, (_, 1)
    tile.return
  }
}
"""


class Editor(LanguageClient):
    """An editor with one open file."""

    def __init__(self) -> None:
        super().__init__("editor", "1")
        self.published: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()

        def publish(params: lsp.PublishDiagnosticsParams) -> None:
            self.published.put_nowait(params)

        self.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(publish)

    async def open(self, text: str) -> list[lsp.Diagnostic]:
        """Starts the server with a file, and returns the faults that it tells."""
        command = sys.executable, "-m", "tilefold", "lsp"
        await self.start_io(*command, cwd=str(ROOT))  # pyright: ignore[reportUnknownMemberType]
        await self.initialize_async(lsp.InitializeParams(lsp.ClientCapabilities(), root_uri=None))
        self.initialized(lsp.InitializedParams())
        self.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(URI, "cute", 1, text)))
        return list((await self.published.get()).diagnostics)

    async def change(self, text: str) -> list[lsp.Diagnostic]:
        """Replaces the text, and returns the faults that the server tells then."""
        whole = lsp.TextDocumentContentChangeWholeDocument(text)
        of = lsp.VersionedTextDocumentIdentifier(2, URI)
        self.text_document_did_change(lsp.DidChangeTextDocumentParams(of, [whole]))
        return list((await self.published.get()).diagnostics)


def session(talk: Callable[[Editor], Coroutine[Any, Any, None]]) -> None:
    """Runs a talk with a server of its own, and ends it."""

    async def run() -> None:
        editor = Editor()
        try:
            async with asyncio.timeout(60):
                try:
                    await talk(editor)
                finally:
                    await editor.shutdown_async(None)
                    editor.exit(None)
        finally:
            await editor.stop()

    asyncio.run(run())


def position(text: str, word: str, after: str = "") -> lsp.Position:
    """The position of the second character of a word in a text."""
    at = text.index(word, text.index(after)) + 1
    return lsp.Position(text.count("\n", 0, at), at - text.rfind("\n", 0, at) - 1)


def marked(text: str, at: lsp.Range) -> str:
    """The text of a range within a line."""
    return text.splitlines()[at.start.line][at.start.character : at.end.character]


FILL = "    %zero = arith.constant 0.0 : f32\n    tile.fill %s, %zero\n"
FILE = lsp.TextDocumentIdentifier(URI)


def test_names_types_and_pictures() -> None:
    async def talk(editor: Editor) -> None:
        assert await editor.open(TEXT) == []

        async def hover(word: str, after: str = "") -> str:
            found = await editor.text_document_hover_async(lsp.HoverParams(FILE, position(TEXT, word, after)))
            assert found is not None
            assert isinstance(found.contents, lsp.MarkupContent)
            return found.contents.value

        said = await hover("%A", "slice")
        assert '%A : !tile.tensor<f32, gmem, align<16>, "(64,2):(1,64)">' in said
        assert "data:image/svg+xml;base64," in said
        assert "%part : !tile.tensor" in await hover("%part")
        assert "result = gpu.thread_id" in await hover("gpu.thread_id")
        assert 'L = "(64,2):(1,64)"' in await hover("L =")
        assert "128 elements" in await hover('"${L}"')

        where = lsp.DefinitionParams(FILE, position(TEXT, "%A", "slice"))
        found = await editor.text_document_definition_async(where)
        assert isinstance(found, lsp.Location)
        assert (found.range.start.line, marked(TEXT, found.range)) == (4, "%A")
        asked = lsp.ReferenceParams(lsp.ReferenceContext(True), FILE, position(TEXT, "N}"))
        uses = await editor.text_document_references_async(asked)
        assert uses is not None
        assert [use.range.start.line for use in uses] == [0, 1, 1]
        outline = await editor.text_document_document_symbol_async(lsp.DocumentSymbolParams(FILE))
        assert outline is not None
        assert [symbol.name for symbol in outline] == ["N", "L", "!A", "@kernels", "@scale"]

    session(talk)


def test_faults_as_they_are_typed() -> None:
    async def talk(editor: Editor) -> None:
        faulty = TEXT.replace("tile.slice %A", "tile.slice %B")
        (fault,) = await editor.open(faulty)
        assert (fault.code, marked(faulty, fault.range)) == ("E1004", "%B")
        (fault,) = await editor.change(TEXT.replace("tile.slice", "tile.slise"))
        assert "did you mean tile.slice" in fault.message
        assert await editor.change(TEXT) == []

    session(talk)


def test_columns_are_those_of_the_editor() -> None:
    """An editor counts UTF-16 units: a letter beyond the first plane has two."""
    faulty = TEXT.replace("(_, 1)", '(_, 1) {a = "\U0001d49c", b = %t}')

    async def talk(editor: Editor) -> None:
        (fault,) = await editor.open(faulty)
        line = faulty.splitlines()[fault.range.start.line]
        at = line.encode("utf-16-le")[2 * fault.range.start.character :].decode("utf-16-le")
        assert at.startswith("%t")

    session(talk)


def test_faults_that_passes_find() -> None:
    """They are told of a file that is opened, and not at each letter typed."""
    tile = '!tile.tensor<f32, smem, align<16>, "100000:1">'
    deep = TEXT.replace("    tile.return", f"    %s = tile.alloc : {tile}\n{FILL}    tile.return")

    async def talk(editor: Editor) -> None:
        (fault,) = await editor.open(deep)
        assert fault.range.start.line == TEXT.splitlines().index("    tile.return")
        assert await editor.change(deep) == []

    session(talk)


COMPLETIONS: Mapping[str, tuple[Set[str], Set[str]]] = {
    "    tile.copy %": ({"%A", "%n", "%t", "%c0", "%part"}, {"@scale"}),
    "    %x = tile.": ({"tile.copy", "tile.slice"}, {"arith.addi"}),
    "    %x = ar": ({"arith"}, set()),
    "    %m = tile.tiled_mma #m : !": ({"!A", "!tile.tensor"}, {"#tile.mma_atom"}),
    '    %m = tile.tiled_mma #tile.mma_atom<"SM80': ({"SM80_16x8x16_F32F16F16F32_TN"}, set()),
    '    %s = tile.alloc : "${': ({"N", "L"}, set()),
    "    // no words in a comment %": (set(), {"%A"}),
}
"""By a line that is typed, words that are offered there, and others that are not."""


def test_completion() -> None:
    async def talk(editor: Editor) -> None:
        await editor.open(TEXT)
        for typed, (expected, others) in COMPLETIONS.items():
            text = TEXT.replace("    tile.return", f"{typed}\n    tile.return")
            await editor.change(text)
            line = text[: text.index(typed)].count("\n")
            at = lsp.CompletionParams(FILE, lsp.Position(line, len(typed)))
            found = await editor.text_document_completion_async(at)
            assert isinstance(found, lsp.CompletionList)
            assert not found.is_incomplete
            labels = {item.label for item in found.items}
            assert expected <= labels, typed
            assert not others & labels, typed
            for item in found.items:
                assert isinstance(item.text_edit, lsp.TextEdit)
                assert item.text_edit.range.end.character == len(typed)

    session(talk)


def test_command_without_the_library(tmp_path: Path) -> None:
    import subprocess

    (tmp_path / "pygls.py").write_text("raise ModuleNotFoundError('no pygls', name='pygls')")
    ran = subprocess.run(
        [sys.executable, "-c", "from tilefold.commands.cli import main; raise SystemExit(main(['lsp']))"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 1
    assert "error[E4004]: the language server needs pygls" in ran.stderr
