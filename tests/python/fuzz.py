# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Damaged kernels in Python: `python -m tests.python.fuzz --count 10000`.

Functions of the examples and of these tests are damaged in their syntax trees, and run on the simulator. Each must run,
be refused with an error that has a code, or raise what its text raises by itself, and all of that soon; anything else
is a bug.
"""

import argparse
import ast
import contextlib
import io
import linecache
import re
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from traceback import format_exception, walk_tb
from types import FrameType
from typing import Any

import numpy as np
from tilefold.base.errors import TilefoldError
from tilefold.builder.tracing.source import is_users

from tests.python.damage import damaged
from tests.python.test_generated import THREADS, call
from tilefold.cute.jit import JitFunction

ROOT = Path(__file__).parents[2]
MAX_SECONDS = 200  # on a busy machine; most kernels take some milliseconds
_NUMBERS = count()


@dataclass(frozen=True)
class Program:
    """A text of Python, the functions of it that are damaged, and an expression that launches kernels."""

    name: str
    text: str
    functions: frozenset[str]
    launch: str


_EXAMPLES = {
    "attention": "attention(*(normal(seed, (32, 1, 64)) for seed in range(4)), Config(16, 16, 1, True), 'sim')",
    "four_ways": "[each(*[normal(0, (8, 128))] * 2, 8, 128, 8).launch(1, 128, device='sim') for each in KERNELS]",
    "gemm": "gemm(normal(0, (32, 64)), normal(1, (64, 64)), normal(2, (32, 64)), None, None,"
    " Config(32, 64, 32, (1, 2), 2), 'sim')",
    "linear": "gemm(normal(0, (32, 64)), normal(1, (64, 64)), normal(2, (32, 64)), normal(3, (64,)), gelu,"
    " Config(32, 64, 32, (1, 2), 2), 'sim')",
    "rmsnorm": "rmsnorm(normal(0, (1, 40)), normal(1, (40,)), normal(2, (1, 40)), 1e-5, Config(1, 64), 'sim')",
    "sgemm": "matmul(*(normal(seed, (64, 16), np.float32) for seed in range(2)), normal(2, (64, 64), np.float32),"
    " device='sim')",
    "softmax": "softmax(normal(0, (2, 40)), normal(1, (2, 40)), Config(2, 32), 'sim')",
}


def programs() -> list[Program]:
    """What is damaged: the examples, the functions of the tests of control flow and of mistakes, and the kernels of
    those tests that take nothing.
    """
    found = [_of_example(name, launch) for name, launch in _EXAMPLES.items()]
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        tree = ast.parse(path.read_text())
        for node in tree.body:
            if not isinstance(node, ast.FunctionDef) or node.decorator_list:
                continue
            parameters = ", ".join(each.arg for each in node.args.args)
            launch = {
                "t, n": f"call({node.name}, np.zeros({THREADS}, np.int32), 3).launch(1, {THREADS}, device='sim')",
                "out": f"cute.kernel({node.name})(np.zeros(64, np.float32)).launch(1, 32, device='sim')",
                "": f"{node.name}()",
            }.get(parameters)
            functions = frozenset(_kernels(node)) if parameters == "" else frozenset({node.name})
            if launch is not None and functions:
                text = ast.unparse(ast.Module([each for each in tree.body if each is node or not _is_test(each)], []))
                found.append(Program(f"{path.stem}.{node.name}", text, functions, launch))
    return found


def _of_example(name: str, launch: str) -> Program:
    """An example with what it imports from others in one text."""
    text = re.sub(r"from (rows|gemm) import .*", lambda match: _source(match[1]), _source(name))
    tree = ast.parse(re.sub(r"from (rows|gemm) import .*", "", text))
    functions = {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)} - {"main", "reference"}
    return Program(name, ast.unparse(tree), frozenset(functions), launch)


def _source(example: str) -> str:
    return (ROOT / "examples" / "python" / f"{example}.py").read_text()


def _is_test(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name.startswith("test_")


def _kernels(node: ast.FunctionDef) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.FunctionDef) and any("cute." in ast.unparse(mark) for mark in each.decorator_list):
            yield each.name


class Overdue(BaseException):
    """A program takes too long."""


def _interrupt(_: int, __: FrameType | None) -> None:
    raise Overdue


def fault(text: str, launch: str) -> str | None:
    """What is wrong with how a program is treated; None if it runs or is refused as it should be."""
    file = f"<damaged {next(_NUMBERS)}>"
    linecache.cache[file] = (len(text), None, [f"{line}\n" for line in text.splitlines()], file)
    names: dict[str, Any] = {"__name__": "damaged", "np": np, "call": call}
    before = signal.signal(signal.SIGALRM, _interrupt)
    signal.alarm(MAX_SECONDS)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(text, file, "exec"), names)
            eval(compile(launch, file, "eval"), names)
    except TilefoldError as error:
        if not re.fullmatch(r"E\d{4}", error.code):
            return f"an error without a code: {error}"
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also SystemExit, and what pytest raises
        is_running = any("/runtime/sim/" in frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__))
        if not _is_users(error) and not (is_running and isinstance(error, Overdue)):
            return "".join(format_exception(error))
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        del linecache.cache[file]
    return None


def _is_users(error: BaseException) -> bool:
    """Whether what raised an exception was called by the text, not by tilefold, or by what does for a kernel what
    Python does.
    """
    for frame in reversed([frame for frame, _ in walk_tb(error.__traceback__)]):
        module = str(frame.f_globals.get("__name__", ""))
        if is_users(frame) or (
            isinstance(error, TypeError | ValueError)
            and (frame.f_globals.get("STANDS_FOR_PYTHON") or module == JitFunction.__module__)
        ):
            return True
        is_made = frame.f_code.co_filename == "<string>"  # by dataclasses, whose attributes a text may set
        if module.partition(".")[0] in ("tilefold", "xdsl") and not is_made:
            return False
    return True


def run(amount: int, seed: int, texts: Sequence[Program]) -> int:
    """Tries so many damaged programs; prints those that are treated wrongly, and returns how many there are."""
    random = Random(seed)
    wrong = 0
    for number in range(amount):
        program = random.choice(texts)
        text = damaged(random, program.text, program.functions)
        if (problem := fault(text, program.launch)) is not None:
            wrong += 1
            changed = set(text.splitlines()) - set(program.text.splitlines())
            lines = "\n".join(line for line in text.splitlines() if line in changed)
            print(f"seed {seed}, number {number}, {program.name}:\n{lines}\n{problem}\n", flush=True)
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the fuzz; 1 where a program was treated wrongly."""
    parser = argparse.ArgumentParser(prog="python -m tests.python.fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=1000, help="how many programs (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="where the random numbers begin (default: 0)")
    options = parser.parse_args(arguments)
    wrong = run(options.count, options.seed, programs())
    print(f"{options.count} damaged kernels, {wrong} treated wrongly")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
