# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks as data that repeat them on another machine: programs, options, the values of arrays, settings, versions."""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import numpy as np

from tilefold.base.errors import Code, TilefoldError
from tilefold.driver.faults import AS_GIVEN
from tilefold.runtime.engine import NumPyArray
from tilefold.runtime.settings import given_settings
from tilefold.tools.reproduction.folder import facts

MAX_BYTES = 1 << 30
"""The most bytes that the arrays of a replay have."""


@dataclass(frozen=True)
class Repeated:
    """A check of one program: its name in messages, its text, the options of the command, and the arrays among its
    arguments. The text `is_ptx`, or it is a program in another language with its `compiled` PTX, or a .cute file.
    """

    name: str
    text: str
    options: Sequence[str] = ()
    arrays: Mapping[str, NumPyArray] = field(default_factory=dict[str, NumPyArray])
    compiled: str = ""
    is_ptx: bool = False
    input: str = AS_GIVEN
    """The arguments in words."""

    def as_dict(self) -> dict[str, Any]:
        """The check as plain data."""
        data: dict[str, object] = {"name": self.name, "text": self.text, "options": list(self.options)}
        data["is_ptx"] = self.is_ptx
        data["input"] = self.input
        if self.compiled:
            data["compiled"] = self.compiled
        data["arrays"] = {name: _packed(array) for name, array in self.arrays.items()}
        return data


def replay_of(checks: Sequence[Repeated], *, seed: int, resident: int) -> dict[str, Any]:
    """The data that repeat checks: a part of a report as JSON."""
    return {
        "schedule": {"seed": seed, "resident": resident},
        "versions": facts(),
        "settings": dict(given_settings()),
        "checks": [check.as_dict() for check in checks],
    }


def read_replay(text: str, name: str) -> list[Repeated]:
    """The checks of a report as JSON. TilefoldError (E4003) for another text, and for one that cannot be repeated."""
    try:
        report = json.loads(text)
        given = report["replay"]
        if given is None:
            message = f"{name}: the report says nothing that repeats the check"
            raise TilefoldError(Code.CLI_VALUE, message, "its arguments hold addresses of this machine")
        return [_repeated(check) for check in given["checks"]]
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, RecursionError, zlib.error) as error:
        message = f"{name}: this is not a report of `tilefold check --json`"
        raise TilefoldError(Code.CLI_VALUE, message) from error


def _repeated(check: dict[str, Any]) -> Repeated:
    texts = [check["name"], check["text"], check.get("compiled", ""), *check["options"], *check["arrays"]]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a text is no text")
    arrays = {name: _unpacked(array) for name, array in check["arrays"].items()}
    compiled, is_ptx = check.get("compiled", ""), bool(check["is_ptx"])
    given = str(check["input"])
    return Repeated(check["name"], check["text"], check["options"], arrays, compiled, is_ptx, given)


def _packed(array: NumPyArray) -> str:
    """The bytes of a .npy file, compressed, in base 64."""
    buffer = BytesIO()
    np.save(buffer, np.ascontiguousarray(array).reshape(array.shape), allow_pickle=False)
    return base64.b64encode(zlib.compress(buffer.getvalue())).decode()


def _unpacked(text: str) -> NumPyArray:
    content = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), MAX_BYTES)
    return np.lib.format.read_array(BytesIO(content), allow_pickle=False)
