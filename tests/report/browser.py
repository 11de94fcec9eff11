# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chromium without a window, told what to do by the Chrome DevTools Protocol."""

import asyncio
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tornado.websocket import WebSocketClientConnection, websocket_connect

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find() -> str | None:
    """The browser's program, if one is installed."""
    return next((path for name in NAMES if (path := shutil.which(name)) is not None), None)


class Tab:
    """A page in the browser. `requests` are the addresses that it has asked for, `errors` what its scripts threw."""

    def __init__(self, loop: asyncio.AbstractEventLoop, socket: WebSocketClientConnection) -> None:
        self._loop, self._socket = loop, socket
        self._count = 0
        self._session = ""
        self.requests: list[str] = []
        self.errors: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Calls a method of the protocol."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        return self._loop.run_until_complete(asyncio.wait_for(self._answer(json.dumps(message), self._count), 60))

    async def _answer(self, message: str, number: int) -> dict[str, Any]:
        await self._socket.write_message(message)
        while True:
            text = await self._socket.read_message()
            assert text is not None, "the browser has ended"
            answer = json.loads(text)
            if answer.get("method") == "Network.requestWillBeSent":
                self.requests.append(answer["params"]["request"]["url"])
            elif answer.get("method") == "Runtime.exceptionThrown":
                self.errors.append(json.dumps(answer["params"]["exceptionDetails"]))
            elif answer.get("method") == "Log.entryAdded":
                self.errors.append(answer["params"]["entry"]["text"])
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer.get("result", {})

    def run(self, script: str) -> Any:
        """The value of an expression of the page's language."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def open(self, page: Path) -> None:
        """Opens a file, and waits until its script has run."""
        self.call("Page.navigate", url=page.as_uri())
        wait = "document.documentElement?.dataset.ready === 'true'"
        script = f"new Promise(done => {{ const look = () => {wait} ? done(true) : setTimeout(look, 10); look(); }})"
        assert self.run(script)

    def press(self, key: str) -> None:
        """Presses and releases a key."""
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **(text if kind == "keyDown" else {}))


async def _connected(address: str) -> WebSocketClientConnection:
    return await websocket_connect(address, max_message_size=1 << 28)


async def _close(socket: WebSocketClientConnection) -> None:
    """Closes a connection in the loop that runs it, as tests may have left the thread without one."""
    socket.close()


@contextmanager
def browser(program: str) -> Generator[Tab, None, None]:
    """A page in a browser of its own, which cannot reach any host."""
    loop = asyncio.new_event_loop()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [
                program, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
                f"--user-data-dir={profile}", "--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1400,1000",
                "--no-first-run", "--disable-extensions",
            ],
            stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        try:
            assert process.stderr is not None
            lines = (re.search(r"listening on (ws://\S+)", line) for line in process.stderr)
            socket = loop.run_until_complete(_connected(next(found[1] for found in lines if found is not None)))
            yield Tab(loop, socket)
            loop.run_until_complete(_close(socket))
        finally:
            process.kill()
            process.wait()
            if process.stderr is not None:
                process.stderr.close()
            loop.close()
