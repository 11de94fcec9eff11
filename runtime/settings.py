# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Settings: the one place that reads environment variables."""

import os
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import Code, TilefoldError

CACHE_DIR = "TILEFOLD_CACHE_DIR"
"""The folder of the cache of compiled kernels; by default that of the user for caches."""
CACHE_LIMIT = "TILEFOLD_CACHE_LIMIT"
"""How large the cache may grow, in MiB; 0 turns it off."""

_DEFAULT_LIMIT_MIB = 1024


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """Where the cache of compiled kernels is, and the bytes that it may hold; 0 where it is off."""

    folder: Path
    limit: int


def cache_settings() -> CacheSettings:
    """The settings of this process: the cache is off for a user who has no home. TilefoldError (E4003) for a limit that
    is not a number.
    """
    text = os.environ.get(CACHE_LIMIT, "") or str(_DEFAULT_LIMIT_MIB)
    if not text.isdecimal() or len(text) > 9:
        raise TilefoldError(
            Code.CLI_VALUE, f"{CACHE_LIMIT}={text[:40]} is not a number of MiB", "0 turns the cache off"
        )
    folder = os.path.expanduser(os.environ.get(CACHE_DIR, ""))
    path = Path(folder) if folder else _default_folder()
    return CacheSettings(path, int(text) << 20 if folder or path.is_absolute() else 0)


def _default_folder() -> Path:
    """The user's folder for caches; one that is not absolute for a user who has no home."""
    from platformdirs import user_cache_path

    try:
        return user_cache_path("tilefold", appauthor=False)
    except RuntimeError:  # so newer versions say that there is no home
        return Path("~/.cache/tilefold")
