# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A cache on disk that processes share: bytes by the digest of their sources.

An entry is written to a file of its own and renamed into place, so that a reader sees all of it or nothing, whenever a
writer is killed. Its checksum is compared when it is read. Locks are the operating system's, which releases those of a
process that ends, and nothing but work done twice depends on them.

Entries are machine code, which a launch runs. So a store is one user's: a file that another user owns or can change is
neither read nor added to. That holds for the folder of the entries and for all in it. Above it may be any folder, such
as `/tmp`: an entry of another user stays that user's.
"""

import os
import stat
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import ENOTDIR, EPERM
from hashlib import blake2b
from pathlib import Path
from time import time

from ..settings import CacheSettings, read_cache_settings

_MAGIC = b"tilefold cache entry 1\n"
_DIGEST = 16
_FORMAT = "v1"  # the folder of entries; one of another form would get another name
_LEFT_OVER = ".tmp"
_OLD_SECONDS = 3600.0  # a file that was being written so long ago belongs to a process that was killed
_PATIENCE_SECONDS = 60.0  # how long to wait for an entry that another process makes, before making it as well
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
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
class Kept:
    """An entry: its bytes on disk, when it was used last (seconds since 1970), and its data, None if damaged."""

    size: int
    used: float
    data: bytes | None


@dataclass(frozen=True, slots=True)
class _Entry:
    path: Path
    size: int
    used: float


class Store:
    """The cache in one folder, of at most `limit` bytes. Any number of threads and processes of one user may use it."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self.limit = limit
        self._entries = folder / _FORMAT

    def get(self, key: str) -> bytes | None:
        """The bytes of an entry, which counts as used now; None if the store has none, or others can have written it.
        One that is damaged is removed.
        """
        path = self._path(key)
        try:
            _check_private(self._entries)
            _check_private(path.parent)
            data = _data(path)
        except OSError:
            return None
        if data is None:
            _remove(path)
            return None
        with suppress(OSError):  # it was removed meanwhile, or belongs to another user; it has been read
            os.utime(path)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keeps an entry, and removes those that were used longest ago where there are too many bytes.

        A RuntimeWarning where the folder cannot be written, or is another user's: then nothing is kept.
        """
        path = self._path(key)
        try:
            self._make_private(path.parent)
            handle, name = tempfile.mkstemp(_LEFT_OVER, dir=path.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_MAGIC + _checksum(key, data) + data)
                os.replace(name, path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
            self._shrink()
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
            self._make_private(self._entries)
            lock = FileLock(self._entries / f"{key[:2]}.lock", timeout=_PATIENCE_SECONDS)
            lock.acquire()
        except (OSError, Timeout, NotImplementedError):
            lock = None  # a file system without locks, or a process that is stopped: the work may be done twice
        try:
            yield
        finally:
            if lock is not None:
                lock.release()

    def entries(self) -> Iterator[Kept]:
        """The entries, the last used first; to look at an entry does not count as use."""
        for entry in sorted(self._scan(), key=lambda entry: entry.used, reverse=True):
            try:
                data = _data(entry.path)
            except OSError:
                continue  # another process removed it, or it is another user's
            yield Kept(entry.size, entry.used, data)

    def usage(self) -> Usage:
        """The number and the bytes of the entries."""
        entries = list(self._scan())
        return Usage(len(entries), sum(entry.size for entry in entries))

    def clear(self) -> Usage:
        """Removes all entries, and returns their number and bytes."""
        removed = [entry for entry in self._scan() if _remove(entry.path)]
        for path in self._left_overs():
            _remove(path)
        return Usage(len(removed), sum(entry.size for entry in removed))

    def _make_private(self, folder: Path) -> None:
        """Makes the folder of all entries and, in it, `folder`, for this user alone. OSError if it is another's."""
        for path in dict.fromkeys((self._entries, folder)):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = path.lstat()
            if _is_own(status) and stat.S_ISDIR(status.st_mode) and status.st_mode & _OTHERS_WRITE:
                path.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS_WRITE)  # each entry in it is checked as well
            _check_private(path)

    def _path(self, key: str) -> Path:
        return self._entries / key[:2] / key

    def _scan(self) -> Iterator[_Entry]:
        for path in self._files():
            if not path.name.endswith(_LEFT_OVER):
                try:
                    status = path.stat()
                except OSError:
                    continue  # another process removed it
                yield _Entry(path, status.st_size, status.st_mtime)

    def _left_overs(self) -> Iterator[Path]:
        return (path for path in self._files() if path.name.endswith(_LEFT_OVER))

    def _files(self) -> Iterator[Path]:
        for folder in _children(self._entries):
            yield from _children(folder)

    def _shrink(self) -> None:
        """Removes the entries that were used longest ago, down to below the limit, and files of killed processes."""
        for path in self._left_overs():
            try:
                if time() - path.stat().st_mtime > _OLD_SECONDS:
                    _remove(path)
            except OSError:
                continue
        entries = list(self._scan())
        total = sum(entry.size for entry in entries)
        if total <= self.limit:
            return
        for entry in sorted(entries, key=lambda entry: entry.used):
            if total <= self.limit * _KEPT:
                break
            if _remove(entry.path):
                total -= entry.size


def default_store() -> Store | None:
    """The store of this user, as the environment says; None if it is off. TilefoldError (E4003) for bad settings."""
    return store_of(read_cache_settings())


def store_of(settings: CacheSettings) -> Store | None:
    """The store of some settings; None if it is off."""
    return Store(settings.folder, settings.limit) if settings.limit else None


def _data(path: Path) -> bytes | None:
    """The data of an entry, whose key is the name of the file; None if it is damaged. OSError if it is not
    there, cannot be read, or may be from another user.
    """
    with open(path, "rb", opener=_open_file) as file:
        _check_mode(os.fstat(file.fileno()), stat.S_ISREG, path)
        content = file.read()
    data = content[len(_MAGIC) + _DIGEST :]
    whole = content.startswith(_MAGIC) and content[len(_MAGIC) : len(_MAGIC) + _DIGEST] == _checksum(path.name, data)
    return data if whole else None


def _checksum(key: str, data: bytes) -> bytes:
    return blake2b(data, key=key.encode()[:64], digest_size=_DIGEST).digest()


def _open_file(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _is_own(status: os.stat_result) -> bool:
    return os.name != "posix" or status.st_uid == os.geteuid()  # elsewhere the folder's access list says who may write


def _check_private(folder: Path) -> None:
    """PermissionError unless it is a folder, no link to one, of this user's, which no other user can write."""
    _check_mode(folder.lstat(), stat.S_ISDIR, folder)


def _check_mode(status: os.stat_result, is_kind: Callable[[int], bool], path: Path) -> None:
    if not is_kind(status.st_mode):
        raise NotADirectoryError(ENOTDIR, "Not a directory" if is_kind is stat.S_ISDIR else "Not a file", str(path))
    if not _is_own(status):
        raise PermissionError(EPERM, "it belongs to another user", str(path))
    if os.name == "posix" and status.st_mode & _OTHERS_WRITE:
        raise PermissionError(EPERM, "other users can write to it", str(path))


def _children(folder: Path) -> list[Path]:
    try:
        return [folder / name for name in os.listdir(folder)]
    except OSError:
        return []


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True
