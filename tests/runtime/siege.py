# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Many processes that write to a store until each is killed at a moment of its own.

    python -m tests.runtime.siege FOLDER WRITERS ENTRIES SEED

Prints the key of every entry that a writer had finished, as its number. POSIX only: the writers are forks.
"""

import os
import signal
import sys
from importlib import import_module
from itertools import count
from pathlib import Path
from random import Random
from selectors import EVENT_READ, DefaultSelector

from tilefold.runtime.compiled.store import Store, digest

LIMIT = 1 << 32  # nothing has to go
_SIZE = 8  # bytes of a number in the pipe


def key(number: int) -> str:
    """The key of an entry."""
    return digest("siege", str(number))


def content(number: int) -> bytes:
    """What belongs to it: from some bytes up to a quarter of a MiB."""
    random = Random(number)
    return random.randbytes(random.randrange(1 << random.randrange(4, 18)))


def write(folder: Path, writer: int, pipe: int) -> None:
    """Puts entries, and writes the number of each that is finished to the pipe, until it is killed."""
    os.nice(5)  # or who kills them hardly comes to it
    store = Store(folder, LIMIT)
    for round in count():
        number = writer * 1_000_000 + round
        with store.making(key(number)):
            store.put(key(number), content(number))
        os.write(pipe, number.to_bytes(_SIZE, "little"))


def besiege(folder: Path, writers: int, entries: int, seed: int) -> list[int]:
    """Starts the writers, kills each when all have written some number of entries, at most `entries`, and returns the
    numbers that they have written.
    """
    import_module("filelock")  # before there are a hundred of us
    random = Random(seed)
    reader, pipe = os.pipe()
    ends: dict[int, int] = {}
    for writer in range(writers):
        if (process := os.fork()) == 0:
            write(folder, writer, pipe)
        ends[process] = random.randint(0, entries) if writer else entries
    os.close(pipe)
    selector, found = DefaultSelector(), b""
    selector.register(reader, EVENT_READ)
    while True:
        for process in [each for each, end in ends.items() if end <= len(found) // _SIZE]:
            os.kill(process, signal.SIGKILL)
            del ends[process]
        if selector.select(0.002):
            data = os.read(reader, 1 << 16)
            if not data:
                break  # every writer is dead, and all that they have written is read
            found += data
    return [int.from_bytes(found[at : at + _SIZE], "little") for at in range(0, len(found), _SIZE)]


def main() -> int:
    """Besieges a store."""
    folder, writers, entries, seed = sys.argv[1:]
    print(*besiege(Path(folder), int(writers), int(entries), int(seed)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
