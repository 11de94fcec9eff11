# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A process that reads and writes a store without end, as the tests start and kill it.

    python -m tests.runtime.hammer FOLDER LIMIT SEED [ROUNDS]

It ends with status 1 if it ever reads other bytes than were put.
"""

import sys
from itertools import count
from pathlib import Path
from random import Random

from tilefold.runtime.compiled.store import Store, digest

KEYS = [digest(str(number)) for number in range(12)]


def content(key: str) -> bytes:
    """What belongs to a key: from some bytes up to half a MiB."""
    random = Random(key)
    return random.randbytes(1 << random.randrange(4, 20))


def main() -> int:
    """Hammers, forever or for some rounds."""
    folder, limit, seed, *rounds = sys.argv[1:]
    store, random = Store(Path(folder), int(limit)), Random(int(seed))
    for _ in range(int(rounds[0])) if rounds else count():
        key = random.choice(KEYS)
        found = store.get(key)
        if found is None:
            with store.making(key):
                found = store.get(key)
                if found is None:
                    store.put(key, content(key))
                    continue
        if found != content(key):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
