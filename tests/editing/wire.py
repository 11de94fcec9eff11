# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The language server at the other end of a wire: messages of any form, and the answers to them, byte for byte."""

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, cast

from tests.project.tree import ROOT

PATIENCE_SECONDS = 60.0
Message = dict[str, Any]


class Wire:
    """A server that was started as editors start it. What it writes is read in a thread, so that no answer blocks."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tilefold", "lsp"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=ROOT)
        self._messages = SimpleQueue[Message]()
        self._errors: list[bytes] = []
        self._readers = [Thread(target=self._read_messages), Thread(target=self._read_errors)]
        for reader in self._readers:
            reader.start()
        self._number = 0

    def send_bytes(self, body: bytes) -> None:
        """Sends a body with its header."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def notify(self, method: str, params: object) -> None:
        """Sends a notification."""
        self.send_bytes(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    def request(self, method: str, params: object) -> Message:
        """Sends a request and returns its answer: a message with `result` or with `error`."""
        self._number += 1
        body = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self.send_bytes(json.dumps(body).encode())
        return self.answer_to(self._number)

    def answer_to(self, number: int | str | None) -> Message:
        """The next answer to a request; notifications before it are dropped."""
        while True:
            message = self.receive()
            if "method" not in message and message.get("id") == number:
                return message

    def receive(self) -> Message:
        """The next message of the server. TimeoutError if none comes."""
        try:
            return self._messages.get(timeout=PATIENCE_SECONDS)
        except Empty:
            raise TimeoutError(f"no message; the server says {self.errors()}") from None

    def published(self, uri: str) -> list[Message]:
        """The diagnostics of the next notification about a file."""
        while True:
            message = self.receive()
            if message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri:
                return message["params"]["diagnostics"]

    def open(self, uri: str, text: str) -> list[Message]:
        """Opens a file, and returns its diagnostics."""
        self.notify("textDocument/didOpen", {"textDocument": _item(uri, text)})
        return self.published(uri)

    def end(self) -> int:
        """Waits for the end of the server, and returns its exit status."""
        status = self.process.wait(PATIENCE_SECONDS)
        for reader in self._readers:
            reader.join()
        return status

    def errors(self) -> str:
        """What the server has written to the standard error."""
        return b"".join(self._errors).decode()

    def _read_messages(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while header := stream.readline():
            size = int(header.removeprefix(b"Content-Length:"))
            while stream.readline().strip():
                pass
            self._messages.put(cast(Message, json.loads(stream.read(size))))

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self._errors.extend(self.process.stderr)


def _item(uri: str, text: str) -> Message:
    return {"uri": uri, "languageId": "cute", "version": 1, "text": text}


@contextmanager
def connected(wire: Wire | None = None) -> Generator[Wire, None, None]:
    """A server that is initialised; in the end it must shut down correctly, with status 0, and without complaint."""
    wire = wire or Wire()
    try:
        answer = wire.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        assert "result" in answer
        wire.notify("initialized", {})
        yield wire
        assert wire.request("shutdown", None)["result"] is None
        wire.notify("exit", None)
        assert (wire.end(), wire.errors()) == (0, "")
    finally:
        wire.process.kill()
        wire.end()
