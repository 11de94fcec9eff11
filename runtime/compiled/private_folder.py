# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A folder that only this user owns, and the files in it: the one place that checks their owners.

A folder is open while it is in use, and its files are named relative to it, so that nobody can put a link to another
folder in its place after the check. Windows opens no folders; there, an access list of the folder says who may write.
"""

import os
import secrets
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from errno import ELOOP, ENOTDIR, EPERM
from pathlib import Path

LEFT_OVER = ".tmp"
"""The ending of the name of a file that is being written, or whose writer was killed."""

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_POSIX = os.name == "posix"
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_BINARY = getattr(os, "O_BINARY", 0)


class PrivateFolder:
    """An open folder of this user that no other user can write. Each name is that of a file or folder in it.

    Every method raises OSError for a link, and for files and folders that another user owns or can write.
    """

    def __init__(self, path: Path, handle: int | None) -> None:
        self.path = path
        self._handle = handle

    def folder(self, name: str, *, close_to_others: bool = False) -> "PrivateFolder":
        """A folder in this one. With `close_to_others`, it is made where it is missing, and other users lose the right
        to write to it. Close it after use."""
        return _open_folder(self.path / name, self._at(name), self._handle, close_to_others)

    def close(self) -> None:
        """Ends the use of the folder."""
        if self._handle is not None:
            os.close(self._handle)

    def __enter__(self) -> "PrivateFolder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def names(self) -> list[str]:
        """The names in the folder, in no order."""
        return os.listdir(self.path if self._handle is None else self._handle)

    def status(self, name: str) -> os.stat_result:
        """The status of a file."""
        status = os.stat(self._at(name), dir_fd=self._handle, follow_symlinks=False)
        _check(status, stat.S_ISREG, self.path / name)
        return status

    def read(self, name: str) -> bytes:
        """The bytes of a file."""
        with self._opened(name, os.O_RDONLY) as handle, os.fdopen(handle, "rb", closefd=False) as file:
            return file.read()

    def write(self, name: str, content: bytes) -> None:
        """Makes or replaces a file. A reader sees all of it or the file before."""
        temporary = f"{name[:32]}.{secrets.token_hex(8)}{LEFT_OVER}"
        try:
            with (
                self._opened(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as handle,
                os.fdopen(handle, "wb", closefd=False) as file,
            ):
                file.write(content)
            os.replace(self._at(temporary), self._at(name), src_dir_fd=self._handle, dst_dir_fd=self._handle)
        except BaseException:
            self.remove(temporary)
            raise

    def touch(self, name: str) -> None:
        """A file counts as used now, if that can be noted."""
        with suppress(OSError, NotImplementedError):
            if _POSIX:
                os.utime(name, dir_fd=self._handle, follow_symlinks=False)
            else:
                os.utime(self._at(name))

    def remove(self, name: str) -> bool:
        """Removes a file, or a link itself, and says whether that worked."""
        try:
            os.unlink(self._at(name), dir_fd=self._handle)
        except OSError:
            return False
        return True

    def lock_file(self, name: str) -> Path:
        """The path of an empty file for a lock, which is made where it is missing."""
        with self._opened(name, os.O_RDWR | os.O_CREAT) as handle:
            if os.fstat(handle).st_nlink > 1:  # a lock empties its file, which may have a name elsewhere
                raise PermissionError(EPERM, "it is a hard link", str(self.path / name))
        return self.path / name

    @contextmanager
    def _opened(self, name: str, flags: int) -> Generator[int, None, None]:
        handle = os.open(self._at(name), flags | _NO_LINK | _BINARY, 0o600, dir_fd=self._handle)
        try:
            _check(os.fstat(handle), stat.S_ISREG, self.path / name)
            yield handle
        finally:
            os.close(handle)

    def _at(self, name: str) -> str:
        return name if self._handle is not None else str(self.path / name)


def open_private(path: Path, *, close_to_others: bool = False) -> PrivateFolder:
    """A folder of this user that no other user can write; above it may be any folder. With `close_to_others`, it is
    made where it is missing, with those above it, and other users lose the right to write to it. Close it after use.

    FileNotFoundError if no such folder, OSError if it is a link, no folder, or another user's.
    """
    if close_to_others:
        with suppress(FileExistsError):  # a file in place of a folder: making the next one says so
            path.parent.mkdir(parents=True, exist_ok=True)
    return _open_folder(path, str(path), None, close_to_others)


def _open_folder(path: Path, name: str, parent: int | None, close_to_others: bool) -> PrivateFolder:
    if close_to_others:
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=parent)
    if not _POSIX:
        _check(os.lstat(name), stat.S_ISDIR, path)
        return PrivateFolder(path, None)
    try:
        handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK, dir_fd=parent)
    except OSError as error:
        if error.errno in (ELOOP, ENOTDIR):  # which of them a link gives depends on the system
            raise NotADirectoryError(ENOTDIR, "it is a link or not a folder", str(path)) from None
        raise
    try:
        status = os.fstat(handle)
        if close_to_others and _is_own(status) and status.st_mode & _OTHERS_WRITE:
            os.fchmod(handle, stat.S_IMODE(status.st_mode) & ~_OTHERS_WRITE)  # each file in it is checked as well
            status = os.fstat(handle)
        _check(status, stat.S_ISDIR, path)
    except BaseException:
        os.close(handle)
        raise
    return PrivateFolder(path, handle)


def _is_own(status: os.stat_result) -> bool:
    return not _POSIX or status.st_uid == os.geteuid()


def _check(status: os.stat_result, is_kind: Callable[[int], bool], path: Path) -> None:
    """OSError unless the status is that of a file or folder, no link, of this user, which no other user can write."""
    if not is_kind(status.st_mode):
        raise NotADirectoryError(ENOTDIR, f"it is not a {'folder' if is_kind is stat.S_ISDIR else 'file'}", str(path))
    if not _is_own(status):
        raise PermissionError(EPERM, "it belongs to another user", str(path))
    if _POSIX and status.st_mode & _OTHERS_WRITE:
        raise PermissionError(EPERM, "other users can write to it", str(path))
