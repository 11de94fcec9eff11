# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The connection to an editor: messages of JSON-RPC 2.0, each with a header, as the Language Server Protocol frames
them. Every request gets an answer, also a malformed one, and no message ends the server but `exit`.
"""

import json
from concurrent.futures import Future
from typing import Any, BinaryIO, cast
from urllib.parse import unquote

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException, JsonRpcInternalError
from pygls.protocol import LanguageServerProtocol

from tilefold.base.errors import Code, TilefoldError
from tilefold.compiler.frontend.source import MAX_BYTES
from tilefold.driver.messages import print_internal_error

MAX_MESSAGE = 6 * MAX_BYTES + (1 << 20)
"""The most bytes of a message: JSON writes a byte of the largest file with up to six (`\\u0001`)."""
_MAX_HEADER = 1 << 12
_CHUNK = 1 << 20
_LENGTH = b"content-length:"


class Connection(LanguageServerProtocol):
    """The protocol of a server. Its messages are answered one after the other, in their order."""

    def serve(self, reader: BinaryIO, writer: BinaryIO) -> int:
        """Answers the messages of an editor until it ends the connection, and returns the exit status: 0, or 1 after
        `exit` without `shutdown`. TilefoldError (E4001) for input that is not a message.
        """
        self.set_writer(_Writer(writer))
        try:
            while (body := _read_message(reader)) is not None:
                self.answer(body)
        except SystemExit as end:  # of `exit`
            return int(end.code or 0)
        return 0

    def answer(self, body: bytes) -> None:
        """Handles a message."""
        if len(body) > MAX_MESSAGE:
            return self._refuse(None, lsp.ErrorCodes.InvalidRequest, f"a message has at most {MAX_MESSAGE} bytes")
        try:
            data = json.loads(body)
        except (ValueError, RecursionError):
            return self._refuse(None, lsp.ErrorCodes.ParseError, "the message is not JSON")
        if not isinstance(data, dict):
            return self._refuse(None, lsp.ErrorCodes.InvalidRequest, "the message is not an object of JSON-RPC 2.0")
        self._handle(cast(dict[str, Any], data))

    def _handle(self, data: dict[str, Any]) -> None:
        number, method, is_request = data.get("id"), data.get("method"), "id" in data
        if "method" not in data and ("result" in data or "error" in data):
            return  # an answer, which the server never asks for
        if data.get("jsonrpc") != self.VERSION or not isinstance(method, str) or not _is_id(number):
            known = number if _is_id(number) else None
            return self._refuse(known, lsp.ErrorCodes.InvalidRequest, "the message is not one of JSON-RPC 2.0")
        if self._shutdown and method != lsp.EXIT:
            if is_request:
                self._refuse(number, lsp.ErrorCodes.InvalidRequest, "the server is shut down")
            return
        if self._workspace is None and method not in (lsp.INITIALIZE, lsp.EXIT, lsp.SHUTDOWN):
            if is_request:
                self._refuse(number, lsp.ErrorCodes.ServerNotInitialized, "the server is not initialised")
            return
        try:
            message: Any = self.structure_message(data)
        except (JsonRpcException, RecursionError):
            text = f"the parameters of {method[:100]!r} are malformed"
            if is_request:
                return self._refuse(number, lsp.ErrorCodes.InvalidParams, text)
            return self._log(text)
        if method == lsp.TEXT_DOCUMENT_DID_CHANGE and not self._is_open(message.params.text_document.uri):
            return self._log(f"{message.params.text_document.uri[:200]!r} is changed, but not open")
        if not method.startswith("notebookDocument/"):  # they are not announced
            self.handle_message(message)

    def _is_open(self, uri: str) -> bool:
        return unquote(uri) in self.workspace.text_documents

    def _refuse(self, number: int | str | None, code: int, message: str) -> None:
        error = {"code": int(code), "message": message}
        self._send_data({"jsonrpc": self.VERSION, "id": number, "error": error})  # null, too, is an id

    def _log(self, text: str) -> None:
        self._server.window_log_message(lsp.LogMessageParams(lsp.MessageType.Error, text))

    def _send_handler_result(self, future: Future[object], *, msg_id: int | str) -> None:
        """The answer of a handler; its errors without a traceback."""
        self._request_futures.pop(msg_id, None)
        try:
            self._send_response(msg_id, result=future.result())
        except TilefoldError as error:
            self._refuse(msg_id, lsp.LSPErrorCodes.RequestFailed, f"{error.code}: {error.message}")
        except JsonRpcException as error:
            self._refuse(msg_id, error.code, error.message)
        except Exception as error:  # a bug of ours must leave the server running
            print_internal_error(error, ["lsp"])
            self._refuse(msg_id, JsonRpcInternalError.CODE, f"internal error: {type(error).__name__}")

    def _check_handler_result(self, future: Future[object]) -> None:
        """A notification has no answer: its errors go to the editor's log."""
        try:
            future.result()
        except TilefoldError as error:
            self._log(f"{error.code}: {error.message}")
        except Exception as error:
            print_internal_error(error, ["lsp"])
            self._log(f"internal error: {type(error).__name__}")


def _is_id(number: object) -> bool:
    """Whether it can be the number of a request; None is that of a notification."""
    return number is None or (isinstance(number, int | str) and not isinstance(number, bool))


class _Writer:
    """The destination of answers; the process ends once nobody reads them."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, data: bytes) -> None:
        try:
            self._stream.write(data)
            self._stream.flush()
        except BrokenPipeError:
            raise SystemExit(1) from None

    def close(self) -> None:
        """The stream is the process's, which closes it when it ends."""


def _read_message(reader: BinaryIO) -> bytes | None:
    """The body of the next message; None at the end of the input. If it is too long, its beginning, which is
    longer than a message may be. TilefoldError (E4001) for other input.
    """
    size = None
    while line := reader.readline(_MAX_HEADER):
        if not line.endswith(b"\n"):
            break
        if line.lower().startswith(_LENGTH):
            digits = line[len(_LENGTH) :].strip()
            if not digits.isdigit() or len(digits) > 18:
                break
            size = int(digits)
        elif not line.strip():
            if size is None:
                break
            return _read_body(reader, size)
    if not line:
        return None
    hint = "an editor starts `tilefold lsp` and sends messages by the Language Server Protocol"
    raise TilefoldError(Code.CLI_READ, "<stdin>: the input is not a message with its Content-Length", hint)


def _read_body(reader: BinaryIO, size: int) -> bytes | None:
    body = bytearray()
    left = size
    while left:
        chunk = reader.read(min(left, _CHUNK))
        if not chunk:
            return None
        left -= len(chunk)
        if len(body) <= MAX_MESSAGE:
            body += chunk
    return bytes(body)
