# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that the driver assembles: what its assembler says of lost speed, seen without a device."""

from pathlib import Path
from typing import Any, cast

import pytest
from tilefold.base.errors import Code, TilefoldError
from tilefold.runtime.compiled.artifact import Artifact
from tilefold.runtime.cuda.driver import CudaError, Driver
from tilefold.runtime.cuda.loaded_kernel import load_module

from tests.cuda.test_arguments import RecordingDriver
from tests.emit.harness import SM80

SLOW = b"ptxas info    : (C7504) Potential Performance Loss: 'setmaxnreg' ignored to maintain compatibility."
OTHER = b"ptxas info    : (C7599) Something that nobody knows in the function 'k'"


class Assembler(RecordingDriver):
    """A driver whose assembler writes `log` for PTX that it has not seen before."""

    def __init__(self, log: bytes, version: int = 13000, errors: bytes = b"") -> None:
        super().__init__("cuModuleLoadDataEx" if errors else "")
        self.log, self.version, self.errors = log, version, errors
        self.seen: set[bytes] = set()
        self.unloaded: list[Any] = []
        self.api.cuModuleUnload = self.unloaded.append

    def call(self, function: str, *args: Any, doing: str = "") -> Any:
        if function == "cuDriverGetVersion":
            return self.version
        if function == "cuModuleLoadDataEx":
            code, count, options, values = args
            assert count == len(options) == len(values)
            given = dict(zip(options, values, strict=True))
            assert given[6] == len(given[5])
            given[5][: len(self.errors)] = self.errors
            if 3 in given and code not in self.seen:
                assert given[4] == len(given[3])
                given[3][: len(self.log)] = self.log
            self.seen.add(code)
        return super().call(function, *args, doing=doing)


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("TILEFOLD_CACHE_DIR", str(tmp_path))
    return tmp_path


def _load(assembler: Assembler, code: str | bytes = "// PTX") -> Any:
    return load_module(cast(Driver, assembler), Artifact("k", code, SM80, (), (32, 1, 1)))


def test_code_without_messages_is_loaded(store: Path, recwarn: pytest.WarningsRecorder) -> None:
    for code in ("// PTX", b"cubin"):
        assert _load(Assembler(b"ptxas info    : Used 168 registers"), code) == "cuModuleLoadDataEx"
    assert not list(store.rglob("*"))
    assert not recwarn.list


def test_slower_code_is_refused_also_when_the_driver_says_nothing_more() -> None:
    assembler = Assembler(SLOW)
    for _ in range(3):
        with pytest.raises(TilefoldError, match="setmaxnreg is dropped") as caught:
            _load(assembler)
        assert caught.value.code == Code.ASSEMBLE_SLOWER
    assert assembler.unloaded == ["cuModuleLoadDataEx"] * 3
    assembler.version += 10  # a newer driver assembles anew, and may do better
    assert _load(assembler) == "cuModuleLoadDataEx"


def test_slower_code_that_is_allowed_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEFOLD_ALLOW_SLOWER", "1")
    assembler = Assembler(SLOW)
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="setmaxnreg is dropped .*assemble with ptxas or the driver"):
            assert _load(assembler) == "cuModuleLoadDataEx"
    assert assembler.unloaded == []


def test_messages_that_are_not_known_are_warnings() -> None:
    with pytest.warns(RuntimeWarning, match="kernel 'k': Something that nobody knows"):
        _load(Assembler(OTHER))


def test_messages_about_what_costs_next_to_nothing_are_no_warnings(recwarn: pytest.WarningsRecorder) -> None:
    log = b"ptxas info    : (C7519) warpgroup.arrive is injected in around line 9 in function 'k'"
    assert _load(Assembler(log)) == "cuModuleLoadDataEx"
    assert not recwarn.list


def test_refusals_have_the_words_of_the_assembler() -> None:
    with pytest.raises(CudaError, match="loading kernel 'k': cuModuleLoadDataEx failed: line 3; error"):
        _load(Assembler(b"", errors=b"line 3; error\0"))
