# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The language server with an editor that sends anything: each request gets an answer, and the server goes on."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tilefold.compiler.frontend.source import MAX_BYTES

from tests.editing.wire import Message, Wire, connected
from tilefold.tools.editing.connection import MAX_MESSAGE

START = {"line": 0, "character": 0}
FILE = "file:///kernel.cute"
REQUESTS = ("hover", "definition", "references", "documentSymbol", "completion")


def _asked(uri: str, method: str = "") -> Message:
    """Parameters of a request about a place."""
    asked: Message = {"textDocument": {"uri": uri}, "position": START}
    return asked | {"context": {"includeDeclaration": True}} if method == "references" else asked


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    """A server for all tests of this file: none may end it, or leave an answer behind."""
    with connected() as wire:
        yield wire


def test_exit_without_shutdown() -> None:
    wire = Wire()
    wire.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
    wire.notify("exit", None)
    assert (wire.end(), wire.errors()) == (1, "")


def test_input_that_ends() -> None:
    wire = Wire()
    assert wire.process.stdin is not None
    wire.process.stdin.close()
    assert (wire.end(), wire.errors()) == (0, "")


@pytest.mark.parametrize(
    "input", [b"hello\r\n\r\n", b"Content-Length: x\r\n\r\n", b"Content-Length: -1\r\n\r\n{}", b"a" * 9999]
)
@pytest.mark.sampled(1)
def test_input_that_is_no_message(input: bytes) -> None:
    wire = Wire()
    assert wire.process.stdin is not None
    wire.process.stdin.write(input)
    wire.process.stdin.close()
    assert wire.end() == 1
    assert wire.errors().startswith("error[E4001]: <stdin>: the input is not a message")


def test_requests_before_and_after_their_time() -> None:
    wire = Wire()
    assert wire.request("textDocument/hover", _asked(FILE))["error"]["code"] == -32002
    with connected(wire):
        pass
    wire = Wire()
    wire.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
    wire.request("shutdown", None)
    assert wire.request("textDocument/hover", _asked(FILE))["error"]["code"] == -32600
    wire.notify("textDocument/didOpen", {})
    wire.notify("exit", None)
    assert (wire.end(), wire.errors()) == (0, "")


def _message(**fields: object) -> bytes:
    return json.dumps(
        {"jsonrpc": "2.0", "id": "one", "method": "textDocument/hover", "params": _asked(FILE)} | fields
    ).encode()


@pytest.mark.parametrize(
    ("body", "number", "code"),
    [
        (b"", None, -32700),
        (b"{nonsense", None, -32700),
        (b"\xff", None, -32700),
        (b"[" * 100_000, None, -32700),
        (b"5", None, -32600),
        (b"[1, 2]", None, -32600),
        (b"{}", None, -32600),
        (_message(jsonrpc="1.0"), "one", -32600),
        (_message(method=5), "one", -32600),
        (_message(id=[1]), None, -32600),
        (_message(id=True), None, -32600),
        (_message(method="nonsense"), "one", -32601),
        (_message(params=None), "one", -32602),
        (_message(params=5), "one", -32602),
        (_message(params={}), "one", -32602),
        (_message(params=[_asked(FILE)]), "one", -32602),
        (_message(params={"textDocument": 5, "position": START}), "one", -32602),
        (_message(params=_asked(FILE) | {"position": {"line": -1, "character": 0}}), "one", -32602),
        (_message(params=_asked(FILE) | {"position": {"line": 1 << 40, "character": 0}}), "one", -32602),
        (_message(method="workspace/executeCommand", params={"command": "rm"}), "one", -32602),
        (b" " * (MAX_MESSAGE + 1), None, -32600),
    ],
)  # fmt: skip
def test_malformed_message(wire: Wire, body: bytes, number: str | None, code: int) -> None:
    wire.send_bytes(body)
    answer = wire.answer_to(number)
    assert answer["error"]["code"] == code
    assert set(answer["error"]) == {"code", "message"}


@pytest.mark.parametrize("method", REQUESTS)
@pytest.mark.parametrize("parameters", [None, 5, [], {}, {"textDocument": None}, {"textDocument": {"url": FILE}}])
def test_malformed_parameters(wire: Wire, method: str, parameters: object) -> None:
    answer = wire.request(f"textDocument/{method}", parameters)
    message = f"the parameters of 'textDocument/{method}' are malformed"
    assert answer["error"] == {"code": -32602, "message": message}


@pytest.mark.parametrize("method", ["didOpen", "didChange", "didSave", "didClose"])
def test_malformed_notification(wire: Wire, method: str) -> None:
    wire.notify(f"textDocument/{method}", {"textDocument": 5})
    message = wire.receive()
    assert message["method"] == "window/logMessage"
    assert "malformed" in message["params"]["message"]
    assert wire.open(FILE, "// nothing\n") == []


@pytest.mark.parametrize("method", REQUESTS)
@pytest.mark.parametrize(
    "uri", ["file:///dev/zero", "file:///nowhere.cute", "untitled:one", "", "file:///a%00b", "file:-", "file:///"]
)
def test_file_that_cannot_be_read(wire: Wire, method: str, uri: str) -> None:
    answer = wire.request(f"textDocument/{method}", _asked(uri, method))
    assert answer["error"]["code"] == -32803
    assert answer["error"]["message"].startswith("E4001: ")
    assert set(answer["error"]) == {"code", "message"}


def test_pipe_is_not_waited_for(wire: Wire, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.cute")
    assert wire.request("textDocument/hover", _asked((tmp_path / "pipe.cute").as_uri()))["error"]["code"] == -32803


@pytest.mark.parametrize("method", ["didChange", "didSave"])
def test_notification_about_an_unknown_file(wire: Wire, method: str) -> None:
    document = {"uri": "file:///nowhere.cute", "version": 1}
    wire.notify(f"textDocument/{method}", {"textDocument": document, "contentChanges": [{"text": "x"}]})
    message = wire.receive()
    assert message["method"] == "window/logMessage"
    assert "nowhere.cute" in message["params"]["message"]


def test_file_that_is_not_open_is_read(wire: Wire, tmp_path: Path) -> None:
    path = tmp_path / "kernel.cute"
    path.write_text("// param N = 64\n")
    assert wire.request("textDocument/documentSymbol", _asked(path.as_uri()))["result"][0]["name"] == "N"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (lambda: "// aaaa\n" * (MAX_BYTES // 8) + "x", "E1005"),
        (lambda: "é" * (MAX_BYTES // 2 + 1), "E1005"),
        (lambda: "// \0\n", "E1006"),
        (lambda: "// \ud800\n", "E1006"),
    ],
    ids=["bytes", "characters", "NUL", "surrogate"],
)
def test_text_that_no_file_may_have(wire: Wire, text: Callable[[], str], code: str, tmp_path: Path) -> None:
    (fault,) = wire.open(FILE, text())
    assert fault["code"] == code
    assert wire.request("textDocument/hover", _asked(FILE))["error"]["message"].startswith(code)
    if code == "E1005":
        path = tmp_path / "kernel.cute"
        path.write_text(text())
        assert wire.request("textDocument/hover", _asked(path.as_uri()))["error"]["message"].startswith(code)
