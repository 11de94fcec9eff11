# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The limits of a process that works for an agent: files of one folder, no network, limited memory and time.

Linux enforces it by Landlock (kernel documentation, userspace-api/landlock), also for code that is not Python. Python's
audit hook refuses the same with a message, on every system.
"""

import ctypes
import os
import resource
import sys
from collections.abc import Iterable
from pathlib import Path

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_PR_SET_NO_NEW_PRIVS = 38
_READ = 0b1101
"""LANDLOCK_ACCESS_FS_EXECUTE, _READ_FILE and _READ_DIR."""
_ALL_FILES = {1: (1 << 13) - 1, 2: (1 << 14) - 1}
"""The accesses to files that a version of Landlock knows; later versions count as the last row."""
_LAST_FILES = (1 << 15) - 1
_ALL_NETWORK = 0b11
"""LANDLOCK_ACCESS_NET_BIND_TCP and _CONNECT_TCP."""
_NETWORK_VERSION = 4
_PATHS = frozenset({
    "open", "os.listdir", "os.scandir", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate", "os.chmod",
    "os.link", "os.symlink", "shutil.rmtree",
})  # fmt: skip
_FORBIDDEN = ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto", "os.system", "os.exec", "os.fork")


def readable_folders() -> tuple[Path, ...]:
    """The folders of Python, of its packages and of the system's libraries."""
    found = [sys.prefix, sys.base_prefix, "/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/dev/null", "/dev/urandom"]
    found += ["/proc/self", *(entry for entry in sys.path if entry)]
    found.append(str(Path(__file__).resolve().parents[3]))
    return tuple(dict.fromkeys(Path(entry).resolve() for entry in found if Path(entry).exists()))


def confine(folder: Path, seconds: int, megabytes: int) -> None:
    """Confines this process, which cannot go back: to files of a folder, so much more memory than it has, and one
    second more on a processor than the caller waits for.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds + 1, seconds + 2))  # the caller's own limit comes first
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if has_landlock() else 0
    if used:
        most = used + (megabytes << 20)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    readable = readable_folders()
    _restrict(folder, readable)
    allowed = tuple(str(path) for path in (folder, *readable))

    def refuse(event: str, args: tuple[object, ...]) -> None:
        if event.startswith(_FORBIDDEN) or (event == "subprocess.Popen" and args[0] != sys.executable):
            raise PermissionError(f"{event} is not allowed here")
        if event in _PATHS and isinstance(args[0], str | bytes):
            path = os.path.realpath(os.fsdecode(args[0]))
            if not any(path == entry or path.startswith(entry + os.sep) for entry in allowed):
                raise PermissionError(13, "this file is outside the folder of the server", path)

    sys.addaudithook(refuse)


def has_landlock() -> bool:
    """Whether the system can enforce the limits for all code."""
    return _version() > 0


def _version() -> int:
    return _call(_CREATE, None, 0, 1) if sys.platform == "linux" else 0


def _call(number: int, *args: object) -> int:
    return int(ctypes.CDLL(None, use_errno=True).syscall(number, *args))


def _restrict(folder: Path, readable: Iterable[Path]) -> None:
    version = _version()
    if version <= 0:
        return
    files = _ALL_FILES.get(version, _LAST_FILES)
    words = [files, _ALL_NETWORK] if version >= _NETWORK_VERSION else [files]
    attributes = (ctypes.c_uint64 * len(words))(*words)
    rules = _call(_CREATE, attributes, ctypes.sizeof(attributes), 0)
    if rules < 0:
        return
    for path, access in ((folder, files), *((path, _READ) for path in readable)):
        if not path.is_dir():
            access &= 0b101
        number = os.open(path, os.O_PATH | os.O_CLOEXEC)
        # struct landlock_path_beneath_attr is packed: 64 bits of accesses, 32 bits of a file descriptor
        rule = access.to_bytes(8, sys.byteorder) + number.to_bytes(4, sys.byteorder)
        _call(_ADD_RULE, rules, 1, rule, 0)
        os.close(number)
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _call(_RESTRICT, rules, 0)
    os.close(rules)
