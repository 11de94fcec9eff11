# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A cache on disk that processes share: bytes by the digest of their sources.

An entry is written to a file of its own and renamed into place, so that a reader sees all of it or nothing, whenever a
writer is killed. Its checksum is compared when it is read. Locks are the operating system's, which releases those of a
process that ends, and nothing but work done twice depends on them.

Entries are machine code, which a launch runs. So a store is one user's: a file that another user owns or can change is
neither read nor added to. That holds for the folder of the entries and for all in it. Above it may be any folder, such
as `/tmp`: an entry of another user stays that user's.
"""

import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from re import compile as pattern
from time import time

from ...base.errors import Code, TilefoldError
from ..settings import CACHE_DIR, CacheSettings, read_cache_settings
from .private_folder import LEFT_OVER, PrivateFolder, open_private

_MAGIC = b"tilefold cache entry 1\n"
_DIGEST = 16
_FORMAT = "v1"  # the folder of entries; one of another form would get another name
_SHELF = pattern(r"[0-9a-f]{2}")  # the name of a folder in it: how the keys of its entries begin
_KEY = pattern(r"[0-9a-f]{64}")
_OLD_SECONDS = 3600.0  # a file that was being written so long ago belongs to a process that was killed
_PATIENCE_SECONDS = 60.0  # how long to wait for an entry that another process makes, before making it as well
_KEPT = 0.9  # the part of the limit that is left when the oldest entries go


def digest(*parts: str | bytes) -> str:
    """The key of bytes that are made from `parts`: 64 hexadecimal digits, others for other parts."""
    hash = blake2b(digest_size=32)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        hash.update(len(data).to_bytes(8, "little"))
        hash.update(data)
    return hash.hexdigest()


@dataclass(frozen=True, slots=True)
class Usage:
    """The contents of a store: its number of entries, and their bytes."""

    entries: int
    bytes: int


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry: its bytes on disk, when it was used last (seconds since 1970), and its data, None if damaged."""

    size: int
    used: float
    data: bytes | None


@dataclass(frozen=True, slots=True)
class _Entry:
    key: str
    size: int
    used: float


class Store:
    """The cache in one folder, of at most `limit` bytes. Any number of threads and processes of one user may use it."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self.limit = limit

    def get(self, key: str) -> bytes | None:
        """The bytes of an entry, which counts as used now; None if the store has none, or others can have written it.
        One that is damaged is removed.
        """
        try:
            with self._entries() as entries, entries.folder(key[:2]) as shelf:
                data = _data(shelf, key)
                if data is None:
                    shelf.remove(key)
                else:
                    shelf.touch(key)
                return data
        except OSError:
            return None

    def put(self, key: str, data: bytes) -> None:
        """Keeps an entry, and removes those that were used longest ago where there are too many bytes.

        A RuntimeWarning where the folder cannot be written, or is another user's: then nothing is kept.
        """
        try:
            with self._entries(close_to_others=True) as entries:
                with entries.folder(key[:2], close_to_others=True) as shelf:
                    shelf.write(key, _MAGIC + _checksum(key, data) + data)
                self._shrink(entries)
        except OSError as error:
            warnings.warn(
                f"the cache in {self.folder} cannot be written: {error.strerror}", RuntimeWarning, stacklevel=2
            )

    @contextmanager
    def making(self, key: str) -> Generator[None, None, None]:
        """Within it, no other process makes this entry, unless one was waited for in vain. Ask `get` once more."""
        from filelock import FileLock, Timeout

        lock = None
        try:
            with self._entries(close_to_others=True) as entries:
                lock = FileLock(entries.lock_file(f"{key[:2]}.lock"), timeout=_PATIENCE_SECONDS)
            lock.acquire()
        except (OSError, Timeout, NotImplementedError):
            lock = None  # a file system without locks, or a process that is stopped: the work may be done twice
        try:
            yield
        finally:
            if lock is not None:
                lock.release()

    def entries(self) -> Iterator[StoredEntry]:
        """The entries, the last used first; to look at an entry does not count as use. TilefoldError as `clear`."""
        with self._looked_at() as entries:
            if entries is None:
                return
            for entry in sorted(_scan(entries), key=lambda entry: entry.used, reverse=True):
                try:
                    with entries.folder(entry.key[:2]) as shelf:
                        data = _data(shelf, entry.key)
                except OSError:
                    continue  # another process removed it
                yield StoredEntry(entry.size, entry.used, data)

    def usage(self) -> Usage:
        """The number and the bytes of the entries. TilefoldError as `clear`."""
        with self._looked_at() as entries:
            found = [] if entries is None else list(_scan(entries))
        return Usage(len(found), sum(entry.size for entry in found))

    def clear(self) -> Usage:
        """Removes all entries, and returns their number and bytes. TilefoldError (E4001) for a folder that is a link,
        or that another user owns or can write.
        """
        with self._looked_at() as entries:
            if entries is None:
                return Usage(0, 0)
            removed = [entry for entry in _scan(entries) if _remove(entries, entry.key)]
            _remove_left_overs(entries, 0.0)
        return Usage(len(removed), sum(entry.size for entry in removed))

    def _entries(self, *, close_to_others: bool = False) -> PrivateFolder:
        """The folder of all entries. OSError if it is missing, or others can write it."""
        return open_private(self.folder / _FORMAT, close_to_others=close_to_others)

    @contextmanager
    def _looked_at(self) -> Generator[PrivateFolder | None, None, None]:
        """The folder of all entries, or None if it is missing. TilefoldError (E4001) if others can write it."""
        try:
            folder = self._entries()
        except FileNotFoundError:
            yield None
            return
        except OSError as error:
            message = f"{self.folder / _FORMAT}: this folder of the cache is not used: {error.strerror}"
            raise TilefoldError(Code.CLI_READ, message, f"set {CACHE_DIR} to a folder of your own") from None
        with folder:
            yield folder

    def _shrink(self, entries: PrivateFolder) -> None:
        """Removes the entries that were used longest ago, down to below the limit, and files of killed processes."""
        _remove_left_overs(entries, _OLD_SECONDS)
        found = list(_scan(entries))
        total = sum(entry.size for entry in found)
        if total <= self.limit:
            return
        for entry in sorted(found, key=lambda entry: entry.used):
            if total <= self.limit * _KEPT:
                break
            if _remove(entries, entry.key):
                total -= entry.size


def default_store() -> Store | None:
    """The store of this user, as the environment says; None if it is off. TilefoldError (E4003) for bad settings."""
    return store_of(read_cache_settings())


def store_of(settings: CacheSettings) -> Store | None:
    """The store of some settings; None if it is off."""
    return Store(settings.folder, settings.limit) if settings.limit else None


def _shelves(entries: PrivateFolder) -> Iterator[PrivateFolder]:
    """The folders of entries that only this user can write."""
    for name in entries.names():
        if _SHELF.fullmatch(name):
            try:
                shelf = entries.folder(name)
            except OSError:
                continue
            with shelf:
                yield shelf


def _scan(entries: PrivateFolder) -> Iterator[_Entry]:
    for shelf in _shelves(entries):
        for name in shelf.names():
            if _KEY.fullmatch(name):
                try:
                    status = shelf.status(name)
                except OSError:
                    continue  # another process removed it, or it is another user's
                yield _Entry(name, status.st_size, status.st_mtime)


def _remove_left_overs(entries: PrivateFolder, age: float) -> None:
    """Removes files of killed writers that are this many seconds old."""
    for shelf in _shelves(entries):
        for name in shelf.names():
            if name.endswith(LEFT_OVER):
                try:
                    if time() - shelf.status(name).st_mtime >= age:
                        shelf.remove(name)
                except OSError:
                    continue


def _remove(entries: PrivateFolder, key: str) -> bool:
    try:
        with entries.folder(key[:2]) as shelf:
            return shelf.remove(key)
    except OSError:
        return False


def _data(shelf: PrivateFolder, key: str) -> bytes | None:
    """The data of an entry; None if it is damaged. OSError if it is not there, cannot be read, or may be from another
    user.
    """
    content = shelf.read(key)
    data = content[len(_MAGIC) + _DIGEST :]
    whole = content.startswith(_MAGIC) and content[len(_MAGIC) : len(_MAGIC) + _DIGEST] == _checksum(key, data)
    return data if whole else None


def _checksum(key: str, data: bytes) -> bytes:
    return blake2b(data, key=key.encode()[:64], digest_size=_DIGEST).digest()
