# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Damaged programs: `python -m tests.cli.fuzz --count 100000`.

Files of the project are damaged token by token, or as people do it, then read, verified and lowered. Each must be
accepted or refused with an error that has a code and is in words of tilefold's own, soon; anything else is a bug.
"""

import argparse
import re
import sys
import time
from collections.abc import Sequence
from math import inf
from pathlib import Path
from random import Random
from traceback import format_exception

from tilefold.base.errors import TilefoldError
from tilefold.base.target import Target
from tilefold.compiler.frontend.params import expand

from tests.cli.slips import one_slip
from tests.words import foreign
from tilefold.driver.lowering import load

ROOT = Path(__file__).parents[2]
MAX_SECONDS = 20.0  # on a busy machine; most programs take some milliseconds
_TOKEN = re.compile(r"\s+|[A-Za-z_][\w.]*|%\w+|[!@#^]\w+|\d+|.", re.DOTALL)
_INSERTED = (
    *'()[]<>{}:,="%!@#^?_*-\0\\é', "->", "//", "${", "(((((((((", "0", "-1", "1", "7", "4294967296",
    "99999999999999999999", "i32", "index", "f16", "smem", "rmem", "loc", '"(4,8):(1,4)"', "S<3,3,3> o 0 o ",
    "tile.copy", "scf.for", "cute.static", "'", " if ", " else ", "\n// if ", "\n// else\n", "\n// end\n",
)  # fmt: skip


def programs() -> list[str]:
    """The texts that are damaged: examples, the benchmarks' kernels, and the faulty files of the tests."""
    folders = ("examples", "benchmarks/kernels", "tests/cli/bad")
    return [file.read_text(errors="replace") for folder in folders for file in sorted((ROOT / folder).glob("*.cute"))]


def damaged(random: Random, text: str) -> str:
    """The text with one to four of its tokens lost, doubled, exchanged, replaced or joined by strangers."""
    tokens = _TOKEN.findall(text)
    for _ in range(random.randrange(1, 5)):
        at = random.randrange(len(tokens))
        match random.randrange(6):
            case 0:
                del tokens[at : at + random.randrange(1, 4)]
            case 1:
                tokens.insert(at, tokens[at])
            case 2:
                other = random.randrange(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 3:
                tokens[at] = random.choice(_INSERTED)
            case 4:
                tokens.insert(at, random.choice(_INSERTED))
            case _:
                tokens[at] = str(random.choice((0, 1, 2, 3, 5, 8, 31, 32, 1024, 2**31, 2**63)))
        if not tokens:
            break
    return "".join(tokens)


def fault(text: str, seconds: float = inf) -> str | None:
    """What is wrong with how a program is treated; None if it is accepted or refused as it should be, in so many
    `seconds`.
    """
    began = time.perf_counter()
    try:
        load(expand(text, "damaged.cute")).at("instr", Target("sm_80"))
    except TilefoldError as error:
        if not re.fullmatch(r"E\d{4}", error.code):
            return f"an error without a code: {error}"
        for said in getattr(error, "diagnostics", (error,)):
            if words := foreign(said.message) or foreign(said.hint):
                return f"an error in the words of a library ({words}): {error}"
    except Exception as error:
        return "".join(format_exception(error))
    taken = time.perf_counter() - began
    return f"it took {taken:.1f} s" if taken > seconds else None


def run(count: int, seed: int, texts: Sequence[str], seconds: float = inf) -> int:
    """Tries `count` damaged programs; prints those that are treated wrongly, and returns how many there are."""
    random = Random(seed)
    wrong = 0
    for number in range(count):
        text = random.choice(texts)
        slip = one_slip(random, text) if random.random() < 0.3 else None
        text = damaged(random, text) if slip is None else slip.text
        if (problem := fault(text, seconds)) is not None:
            wrong += 1
            print(f"seed {seed}, program {number}:\n{text}\n{problem}\n", flush=True)
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the fuzz; 1 where a program was treated wrongly."""
    parser = argparse.ArgumentParser(prog="python -m tests.cli.fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=10000, help="how many programs (default: 10000)")
    parser.add_argument("--seed", type=int, default=0, help="where the random numbers begin (default: 0)")
    options = parser.parse_args(arguments)
    wrong = run(options.count, options.seed, programs(), MAX_SECONDS)
    print(f"{options.count} damaged programs, {wrong} treated wrongly")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
