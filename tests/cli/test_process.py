# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command as a process: interrupts, closed pipes, full disks, little memory and no home cause no traceback."""

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from time import sleep

import pytest
from tilefold.compiler.machine.nvptx import ABANDONED

from tests.project.tree import ROOT

MAIN = "import sys, tilefold.commands.process as p; {setup}; sys.exit(p.main())"
READY = "sys.stderr.write('ready\\n'); sys.stderr.flush()"
COPY, SMALL = "examples/tiled_copy.cute", "examples/six_threads.cute"
COMMANDS = [
    ["--help"],
    ["--version"],
    ["passes"],
    ["explain", "E0203"],
    ["cache"],
    ["layout", "raked_product((8,4):(1,8), 8:1)"],
    [
        "show",
        "tiled-copy",
        "--type",
        "f16",
        "--thr",
        "(8,4):(1,8)",
        "--val",
        "8:1",
        "--atom",
        "UniversalCopy<uint128_t>",
    ],
    ["opt", COPY, "-p", "cse"],
    ["compile", COPY, "--emit", "atoms"],
    ["run", SMALL, "--device", "sim"],
]


def start(
    words: Sequence[str],
    setup: str = "pass",
    limit: Callable[[], object] | None = None,
    stdout: int = subprocess.PIPE,
    **environment: str,
) -> subprocess.Popen[bytes]:
    """A command as a process; `setup` is Python that it runs first, `limit` what is called in it before. It hears the
    signals that these tests may ignore, as a shell's background jobs do.
    """

    def prepare() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        if limit is not None:
            limit()

    variables = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "", **environment}
    command = [sys.executable, "-c", MAIN.format(setup=setup), *words]
    return subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, env=variables, cwd=ROOT, preexec_fn=prepare)


def await_ready(process: subprocess.Popen[bytes]) -> None:
    """Waits for what READY says."""
    assert process.stderr is not None
    assert process.stderr.readline() == b"ready\n"


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    """Status, output and messages of a process that has to end soon."""
    out, said = process.communicate(timeout=500)
    return process.returncode, (out or b"").decode(), said.decode()


@pytest.mark.parametrize("words", [
    ["compile", "examples/hgemm.cute", "--emit", "cubin", "--no-cache", "-o", "{out}/file"],
    ["run", "examples/hgemm.cute", "--device", "sim"],
    ["opt", "examples/hgemm.cute", "-p", "fold-layouts,cse", "--dump-dir", "{out}/dump", "-o", "{out}/file"],
], ids=lambda words: words[0])  # fmt: skip
@pytest.mark.sampled(1)
def test_interrupt_ends_with_one_line(words: list[str], tmp_path: Path) -> None:
    random = Random(words[0])
    interrupted = 0
    written: set[bytes] = set()
    for longest in (0.05, 0.2, 0.5, None):
        process = start([word.replace("{out}", str(tmp_path)) for word in words], READY)
        await_ready(process)
        if longest is not None:
            sleep(random.uniform(0, longest))
            process.send_signal(signal.SIGINT)
        status, _, said = ended(process)
        interrupted += status == 130
        assert (status, said) in ((130, "tilefold: interrupted\n"), (0, ""))
        if (tmp_path / "file").exists():  # an interrupt may come between the last byte and the end
            written.add((tmp_path / "file").read_bytes())
            (tmp_path / "file").unlink()
        assert not [path for path in tmp_path.rglob(".*")], "a part of a file is left"
    assert interrupted
    assert len(written) <= 1, "a part of the file is left"


@pytest.mark.parametrize("busy", [
    "import hashlib; hashlib.pbkdf2_hmac('sha256', b'', b'', 2**31 - 1)",  # runs without Python, as LLVM does
    "exec('try:\\n while True: pass\\nexcept BaseException:\\n while True: pass')",
], ids=["in C", "swallowed"])  # fmt: skip
def test_interrupt_ends_what_hears_nothing(busy: str) -> None:
    process = start([], f"{READY}; import tilefold.commands.cli as c; c.main = lambda: exec({busy!r})")
    await_ready(process)
    sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert ended(process) == (130, "", "tilefold: interrupted\n")


def _has_ended(number: int) -> bool:
    """Whether the process of that number has ended."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


ENDINGS = [
    pytest.param(signal.SIGINT, "interrupted", id="SIGINT"),
    pytest.param(signal.SIGTERM, "terminated", id="SIGTERM"),
    pytest.param(signal.SIGHUP, "hung up", id="SIGHUP"),
]


@pytest.mark.parametrize(("number", "word"), ENDINGS)
@pytest.mark.sampled(1)
def test_a_signal_stops_the_process_that_runs_llvm(number: signal.Signals, word: str, tmp_path: Path) -> None:
    script, told = tmp_path / "python", tmp_path / "process"
    # it tells its number after a while: before that, Python may not have returned from starting it
    script.write_text(f"#!/bin/sh\nsleep 1; echo $$ > {told}.new; mv {told}.new {told}; exec sleep 600\n")
    script.chmod(0o755)
    code = f"sys.executable = {str(script)!r}; n.compile_isolated('', t.Target('sm_80'), 600)"
    imports = "import tilefold.commands.cli as c, tilefold.compiler.machine.nvptx as n, tilefold.base.target as t"
    process = start([], f"{imports}; c.main = lambda: exec({code!r})")
    while not told.exists():
        assert process.poll() is None
        sleep(0.01)
    process.send_signal(number)
    assert ended(process) == (128 + number, "", f"tilefold: {word}\n")
    while not _has_ended(int(told.read_text())):
        sleep(0.01)


@pytest.mark.parametrize(("number", "word"), ENDINGS)
@pytest.mark.sampled(1)
def test_a_signal_while_a_file_is_written_leaves_no_part(number: signal.Signals, word: str, tmp_path: Path) -> None:
    """Between the parts of several files, and between their names."""
    out = tmp_path / "out"
    for name in ("replace", "chmod", "link"):
        out.mkdir()
        for suffix in (".ptx", ".h", "_example.c"):
            (out / f"ragged_copy{suffix}").write_text("before")
        stop = f"os.{name} = lambda *words: (old(*words), signal.raise_signal({int(number)}))"
        words = ["export", "examples/ragged_copy.cute", "--ptx", "-o", str(out)]
        process = start(words, f"import os, signal; old = os.{name}; {stop}")
        assert ended(process) == (128 + number, "", f"tilefold: {word}\n")
        assert sorted(file.name for file in out.iterdir()) == [
            "ragged_copy.h", "ragged_copy.ptx", "ragged_copy_example.c"
        ]  # fmt: skip
        assert {file.read_text() for file in out.iterdir()} == {"before"}
        shutil.rmtree(out)


def test_the_process_that_runs_llvm_ends_with_the_one_that_it_works_for(tmp_path: Path) -> None:
    """Also where that one is killed, and the loops would keep LLVM busy for minutes."""
    text = kernel_of_loops(20_000)
    main = "from tilefold.compiler.machine import nvptx; nvptx.child_main()"
    command = [sys.executable, "-c", main, "compile", "sm_80"]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables)
    assert process.stdin is not None
    process.stdin.write(b"%d\n%s" % (len(text), text))
    process.stdin.flush()
    sleep(1)  # LLVM may have begun, or not
    assert process.poll() is None
    process.stdin.close()
    assert process.wait() == ABANDONED


def kernel_of_loops(count: int) -> bytes:
    """LLVM IR of a kernel with so many loops, one after the other."""
    lines = ["define ptx_kernel void @k(ptr addrspace(1) %a, i32 %n) {", "  br label %b0"]
    for i in range(count):
        lines += [
            f"b{i}:", f"  br label %l{i}", f"l{i}:", f"  %i{i} = phi i32 [0, %b{i}], [%j{i}, %l{i}]",
            f"  store volatile i32 %i{i}, ptr addrspace(1) %a", f"  %j{i} = add i32 %i{i}, 1",
            f"  %c{i} = icmp slt i32 %j{i}, %n", f"  br i1 %c{i}, label %l{i}, label %b{i + 1}",
        ]  # fmt: skip
    return "\n".join([*lines, f"b{count}:", "  ret void", "}"]).encode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
@pytest.mark.sampled(1)
def test_a_signal_is_ignored_where_the_caller_does(number: signal.Signals) -> None:
    process = start(["run", SMALL, "--device", "sim"], READY, lambda: signal.signal(number, signal.SIG_IGN))
    await_ready(process)
    process.send_signal(number)
    assert ended(process)[0] == 0


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
@pytest.mark.sampled(2)
def test_output_that_nobody_reads(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = start(words, stdout=writer)
    os.close(writer)
    assert ended(process) == (141, "", "")


@pytest.mark.parametrize("words", [["--version"], ["run", SMALL, "--device", "sim"]])
def test_output_that_finds_no_space(words: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        said = "error[E4002]: the output cannot be written: No space left on device\n"
        assert ended(start(words, stdout=full.fileno())) == (1, "", said)


@pytest.mark.parametrize("descriptor", [0, 1, 2])
@pytest.mark.sampled(2)
def test_closed_streams(descriptor: int) -> None:
    process = start(["passes"], limit=lambda: os.close(descriptor))
    status, out, said = ended(process)
    if descriptor == 1:
        assert (status, said) == (1, "error[E4002]: the output cannot be written: Bad file descriptor\n")
    else:
        assert (status, said) == (0, "")
        assert out.startswith("Stages, ")


@pytest.mark.parametrize("command", ["compile", "opt", "run", "check", "explain", "reduce", "bisect", "export", "show"])
@pytest.mark.sampled(1)
def test_program_from_closed_standard_input(command: str) -> None:
    status, out, said = ended(
        start([command, "-", *(["-o", "x.svg"] * (command == "show"))], limit=lambda: os.close(0))
    )
    assert (status, out) == (1, "")
    assert said == "error[E4001]: <stdin>: the standard input is closed\n  hint: name a file\n"


@pytest.mark.parametrize("words", [["run", "missing.cute"], ["opt", COPY, "-p", "cse", "--print-ir-after-all"], ["-x"]])
def test_messages_that_nobody_reads(words: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        process = start(words, limit=lambda: os.dup2(full.fileno(), 2))
        assert ended(process)[0] == (2 if words == ["-x"] else 1)


def test_export_that_finds_no_space_leaves_no_part(tmp_path: Path) -> None:
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # noqa: E731
    words = ["export", "examples/ragged_copy.cute", "--ptx", "-o", str(tmp_path / "out")]
    assert ended(start(words, limit=limit)) == (
        1, "", f"error[E4002]: {tmp_path / 'out' / 'ragged_copy.ptx'}: File too large\n"
    )  # fmt: skip
    assert list((tmp_path / "out").iterdir()) == []


def test_file_that_finds_no_space_is_not_left_in_part(tmp_path: Path) -> None:
    """A limit on the size of files does what a full disk does."""
    out = tmp_path / "out.ptx"
    out.write_text("before")
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # noqa: E731
    assert ended(start(["compile", COPY, "-o", str(out)], limit=limit)) == (
        1, "", f"error[E4002]: {out}: File too large\n"
    )  # fmt: skip
    assert out.read_text() == "before"
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("mib", [64, 220])
@pytest.mark.parametrize("words", [["run", SMALL, "--device", "sim"], ["compile", COPY]], ids=lambda words: words[0])
@pytest.mark.sampled(2)
def test_too_little_memory(words: list[str], mib: int) -> None:
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))  # noqa: E731
    status, _, said = ended(start(words, limit=limit))
    assert "Traceback" not in said
    assert "internal error" not in said
    if status:
        assert "E4005" in said or "OpenBLAS error: Memory allocation still failed" in said
    assert status in (0, 1)
    assert status == 1 or mib > 64


@pytest.mark.parametrize(("home", "said"), [("/proc", "No such file or directory"), ("/dev/null", "Not a directory")])
@pytest.mark.sampled(1)
def test_home_that_cannot_be_written(home: str, said: str, tmp_path: Path) -> None:
    out = tmp_path / "out.cubin"
    words = ["compile", COPY, "--emit", "cubin", "-o", str(out)]
    variables = dict.fromkeys(("XDG_CACHE_HOME", "TILEFOLD_CACHE_DIR", "TILEFOLD_CACHE_LIMIT"), "")
    warning = f"warning: the cache in {home}/.cache/tilefold cannot be written: {said}\n"
    assert ended(start(words, HOME=home, **variables)) == (0, "", warning)
    assert out.stat().st_size


def test_no_home(tmp_path: Path) -> None:
    """Of a user whom the system does not know."""
    out = tmp_path / "out.cubin"
    words = ["compile", COPY, "--emit", "cubin", "-o", str(out)]
    variables = dict.fromkeys(("XDG_CACHE_HOME", "TILEFOLD_CACHE_DIR", "TILEFOLD_CACHE_LIMIT"), "")
    unknown = "import os, pwd; pwd.getpwuid = {}.__getitem__; del os.environ['HOME']"
    assert ended(start(words, unknown, **variables)) == (0, "", "")
    assert out.stat().st_size
    status, printed, said = ended(start(["cache"], unknown, **variables))
    assert (status, said) == (0, "")
    assert printed.endswith("limit: off\n")
