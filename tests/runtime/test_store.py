# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cache on disk: whole entries or none, whatever happens to the processes that use it."""

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from time import sleep

import pytest
from filelock import FileLock
from tilefold.base.errors import TilefoldError
from tilefold.runtime.compiled.store import Store, Usage, default_store, digest, store_of
from tilefold.runtime.settings import CacheSettings, read_cache_settings

from tests.project.tree import ROOT
from tests.runtime import siege
from tests.runtime.hammer import KEYS, content
from tilefold.commands.cli import main

KEY = digest("a", b"b")
MIB = 1 << 20


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store of one MiB, empty and without a folder yet."""
    return Store(tmp_path / "cache", MIB)


def _files(store: Store) -> list[Path]:
    return [path for path in store.folder.rglob("*") if path.is_file() and path.suffix != ".lock"]


def test_key_depends_on_each_part_and_where_it_ends() -> None:
    keys = {digest(), digest(""), digest("ab"), digest("a", "b"), digest("", "ab"), digest("ab", "")}
    assert len(keys) == 6
    assert all(len(key) == 64 for key in keys)
    assert digest("a", "b") == digest(b"a", b"b")


def test_what_was_put_is_there(store: Store) -> None:
    assert store.get(KEY) is None
    assert store.usage() == Usage(0, 0)
    store.put(KEY, b"content")
    assert store.get(KEY) == b"content"
    assert Store(store.folder, MIB).get(KEY) == b"content"
    store.put(KEY, b"")
    assert store.get(KEY) == b""


@pytest.mark.parametrize("seed", range(8))
def test_damaged_entry_is_removed(store: Store, seed: int) -> None:
    random = Random(seed)
    store.put(KEY, random.randbytes(100))
    (path,) = _files(store)
    damaged = bytearray(path.read_bytes())
    if seed % 2:
        del damaged[random.randrange(len(damaged)) :]
    else:
        damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
    path.write_bytes(damaged)
    assert store.get(KEY) is None
    assert not path.exists()


def test_entry_under_another_name_is_not_taken(store: Store) -> None:
    store.put(KEY, b"content")
    (path,) = _files(store)
    other = digest("other")
    (path.parent.parent / other[:2]).mkdir(exist_ok=True)
    path.rename(path.parent.parent / other[:2] / other)
    assert store.get(other) is None


def test_what_was_used_longest_ago_goes(store: Store) -> None:
    for number in range(4):
        store.put(digest(str(number)), bytes(MIB // 5))
        (path,) = (path for path in _files(store) if path.name == digest(str(number)))
        os.utime(path, (number, number))
    assert store.get(digest("0")) is not None  # is the newest now
    store.put(digest("more"), bytes(MIB // 2))
    there = {key for key in ("0", "1", "2", "3", "more") if store.get(digest(key)) is not None}
    assert there == {"0", "more"}
    assert store.usage().bytes <= MIB


def test_entry_larger_than_the_store_is_not_kept(store: Store) -> None:
    store.put(KEY, bytes(2 * MIB))
    assert store.usage() == Usage(0, 0)


def test_files_of_killed_writers_go_with_time(store: Store) -> None:
    store.put(KEY, b"x")
    (path,) = _files(store)
    old, new = path.parent / "a.tmp", path.parent / "b.tmp"
    for each in (old, new):
        each.write_bytes(b"half")
    os.utime(old, (1, 1))
    assert store.usage().entries == 1
    store.put(digest("large"), bytes(2 * MIB))
    assert (old.exists(), new.exists()) == (False, True)
    store.clear()
    assert not _files(store)


def test_clear_says_what_was_there(store: Store) -> None:
    assert store.clear() == Usage(0, 0)
    for number in range(3):
        store.put(digest(str(number)), b"content")
    usage = store.usage()
    assert (usage.entries, store.clear(), store.usage()) == (3, usage, Usage(0, 0))


def test_folder_that_cannot_be_written_costs_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    store = Store(tmp_path / "file", MIB)
    with pytest.warns(RuntimeWarning, match="cannot be written: Not a directory"):
        store.put(KEY, b"content")
    with store.making(KEY):
        assert store.get(KEY) is None


def test_damaged_entry_that_cannot_be_removed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put(KEY, b"content")
    (path,) = _files(store)
    path.write_bytes(b"damaged")

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(30, "Read-only file system")

    monkeypatch.setattr(os, "unlink", refused)
    assert store.get(KEY) is None
    assert path.exists()
    assert store.clear() == Usage(0, 0)


def test_entries_are_looked_at_without_use(store: Store) -> None:
    for number, data in enumerate((b"old", b"new", b"damaged")):
        store.put(digest(str(number)), data)
        (path,) = (path for path in _files(store) if path.name == digest(str(number)))
        if data == b"damaged":
            path.write_bytes(data)
        os.utime(path, (number, number))
    found = list(store.entries())
    assert [(each.used, each.data) for each in found] == [(2, None), (1, b"new"), (0, b"old")]
    assert found[0].size == len(b"damaged")
    assert [each.used for each in store.entries()] == [2, 1, 0]


def test_user_without_a_home_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEFOLD_CACHE_DIR")
    monkeypatch.setattr("tilefold.runtime.settings._default_folder", lambda: Path("~/.cache/tilefold"))
    assert default_store() is None
    monkeypatch.setenv("TILEFOLD_CACHE_DIR", "kept")
    assert read_cache_settings() == CacheSettings(Path("kept"), 1024 * MIB)


def test_processes_that_are_killed_leave_a_whole_store(store: Store) -> None:
    command = [sys.executable, "-m", "tests.runtime.hammer", str(store.folder), str(MIB)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    random = Random(0)
    running: list[subprocess.Popen[bytes]] = []
    seed = killed = 0
    while killed < 6 or not any(store.get(key) for key in KEYS):  # on a busy machine they begin late
        killed += 1
        while len(running) < 3:
            seed += 1
            running.append(subprocess.Popen([*command, str(seed)], env=environment, cwd=ROOT))
        sleep(random.uniform(0.2, 0.5))
        victim = running.pop(random.randrange(len(running)))
        assert victim.poll() is None, "a process has read what nobody put"
        victim.kill()
        victim.wait()
    for each in running:
        assert each.poll() is None, "a process has read what nobody put"
        each.kill()
        each.wait()
    found = [key for key in KEYS if store.get(key) is not None]
    assert all(store.get(key) == content(key) for key in found)
    # the lock of a killed process is free: the next one gets through at once
    result = subprocess.run([*command, "1", "40"], env=environment, cwd=ROOT, check=False)
    assert result.returncode == 0
    assert store.usage().bytes <= MIB


def test_a_hundred_writers_that_are_killed_lose_nothing(store: Store) -> None:
    command = [sys.executable, "-m", "tests.runtime.siege", str(store.folder), "100", "300", "0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    finished = [int(word) for word in ran.stdout.split()]
    assert len(finished) > 100
    assert all(store.get(siege.key(number)) == siege.content(number) for number in finished)
    assert all(entry.data is not None for entry in store.entries()), "an entry is damaged"
    locks = list(store.folder.rglob("*.lock"))
    assert locks
    for path in locks:
        FileLock(path, timeout=0).acquire().lock.release()
    left_over = [path for path in _files(store) if path.suffix == ".tmp"]
    for path in left_over:
        os.utime(path, (1, 1))
    store.put(KEY, b"content")
    assert not any(path.exists() for path in left_over)


def _give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a file or folder another user's; who may not do that becomes another user."""
    if os.geteuid() == 0:
        os.chown(path, 12345, -1, follow_symlinks=False)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)


def test_entry_of_another_user_is_not_taken_but_replaced(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put(KEY, b"content")
    (path,) = _files(store)
    _give_away(path, monkeypatch)
    assert store.get(KEY) is None
    assert list(store.entries()) == []
    monkeypatch.undo()
    store.put(KEY, b"own")
    assert store.get(KEY) == b"own"


@pytest.mark.parametrize("depth", [1, 2], ids=["all entries", "some entries"])
def test_folder_of_another_user_is_not_used(store: Store, depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put(KEY, b"content")
    (path,) = _files(store)
    before = path.read_bytes()
    _give_away(path.parents[2 - depth], monkeypatch)
    assert store.get(KEY) is None
    with pytest.warns(RuntimeWarning, match="cannot be written: it belongs to another user"):
        store.put(KEY, b"own")
    with store.making(KEY):
        assert store.get(KEY) is None
    assert path.read_bytes() == before


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_entry_that_others_can_write_is_not_taken(store: Store, mode: int) -> None:
    store.put(KEY, b"content")
    (path,) = _files(store)
    assert path.stat().st_mode & 0o077 == 0
    path.chmod(mode)
    assert store.get(KEY) is None
    store.put(KEY, b"own")
    assert store.get(KEY) == b"own"


def test_folder_that_others_can_write_is_closed_to_them(store: Store) -> None:
    store.folder.mkdir(mode=0o777)
    store.folder.chmod(0o777)  # above the entries anything may be, such as /tmp
    store.put(KEY, b"content")
    (path,) = _files(store)
    for folder in path.parents[:2]:
        assert folder.stat().st_mode & 0o077 == 0
        folder.chmod(0o777)
        assert store.get(KEY) is None
        store.put(KEY, b"content")
        assert store.get(KEY) == b"content"
        assert folder.stat().st_mode & 0o022 == 0


@pytest.mark.parametrize("depth", [0, 1, 2], ids=["an entry", "some entries", "all entries"])
def test_links_are_not_followed(store: Store, depth: int, tmp_path: Path) -> None:
    store.put(KEY, b"content")
    (path,) = _files(store)
    linked = (path, *path.parents)[depth]
    linked.rename(tmp_path / "elsewhere")
    linked.symlink_to(tmp_path / "elsewhere")
    assert store.get(KEY) is None


@pytest.mark.parametrize("depth", [0, 1, 2], ids=["an entry", "some entries", "all entries"])
@pytest.mark.parametrize("act", ["list", "info", "clear", "put", "shrink", "lock"])
def test_what_a_link_leads_to_stays(store: Store, depth: int, act: str, tmp_path: Path) -> None:
    store.put(KEY, b"content")
    (path,) = _files(store)
    linked = (path, *path.parents)[depth]
    elsewhere = tmp_path / "elsewhere"
    linked.rename(elsewhere)
    linked.symlink_to(elsewhere)
    _lock_of(path).write_bytes(b"lock")
    before = {each: each.read_bytes() for each in (elsewhere, *elsewhere.rglob("*")) if each.is_file()}
    _act(store, act)
    assert {each: each.read_bytes() for each in before} == before
    assert {each for each in (elsewhere, *elsewhere.rglob("*")) if each.is_file()} == set(before)


def _lock_of(path: Path) -> Path:
    """The lock of an entry, which lies beside the folder of its entries."""
    return path.parents[1] / f"{KEY[:2]}.lock"


def _act(store: Store, act: str) -> None:
    """Uses the store in one way, where nothing in it may be used: it refuses or finds nothing."""
    with suppress(TilefoldError), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        match act:
            case "list":
                assert list(store.entries()) == []
            case "info":
                assert store.usage() == Usage(0, 0)
            case "clear":
                assert store.clear() == Usage(0, 0)
            case "put":
                store.put(KEY, b"own")
            case "shrink":
                store.limit = 0
                store.put(KEY, b"own")
            case _:
                with store.making(KEY):
                    pass


@pytest.mark.parametrize("act", ["list", "info", "clear"])
@pytest.mark.parametrize("depth", [0, 1, 2], ids=["an entry", "some entries", "all entries"])
def test_entries_of_another_user_are_neither_shown_nor_removed(
    store: Store, depth: int, act: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put(KEY, b"content")
    (path,) = _files(store)
    _give_away((path, *path.parents)[depth], monkeypatch)
    _act(store, act)
    assert path.exists()


def test_files_that_the_store_did_not_write_stay(store: Store) -> None:
    store.put(KEY, b"content")
    (path,) = _files(store)
    others = [path.parent / "notes.txt", path.parents[1] / "src" / "main.c", path.parents[1] / "readme"]
    for other in others:
        other.parent.mkdir(exist_ok=True)
        other.write_text("mine")
    assert store.usage().entries == 1
    assert store.clear().entries == 1
    assert all(other.exists() for other in others)


@pytest.mark.parametrize("action", ["list", "info", "clear"])
def test_command_says_that_the_folder_is_a_link(
    action: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "v1").symlink_to(tmp_path / "mine")
    monkeypatch.setenv("TILEFOLD_CACHE_DIR", str(tmp_path / "cache"))
    assert main(["cache", action]) == 1
    message = capsys.readouterr().err
    assert message.startswith(f"error[E4001]: {tmp_path / 'cache' / 'v1'}: this folder of the cache is not used: it is")
    assert "set TILEFOLD_CACHE_DIR to a folder of your own" in message


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
def test_planted_lock_empties_no_file(store: Store, link: Callable[[Path, Path], None], tmp_path: Path) -> None:
    store.put(KEY, b"content")
    (path,) = _files(store)
    (tmp_path / "mine").write_text("mine")
    link(tmp_path / "mine", _lock_of(path))
    with store.making(KEY):
        pass
    assert (tmp_path / "mine").read_text() == "mine"


def test_pipe_in_the_place_of_an_entry_is_not_waited_for(store: Store) -> None:
    store.put(KEY, b"content")
    (path,) = _files(store)
    path.unlink()
    os.mkfifo(path)
    assert store.get(KEY) is None


def test_only_one_process_makes_an_entry(store: Store) -> None:
    code = f"""
import sys, time
from pathlib import Path
from tilefold.runtime.compiled.store import Store
store = Store(Path({str(store.folder)!r}), {MIB})
with store.making({KEY!r}):
    if store.get({KEY!r}) is None:
        time.sleep(0.3)
        store.put({KEY!r}, b"x")
        print("made")
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, cwd=ROOT, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    printed = [each.communicate()[0] for each in running]
    assert sorted(printed) == [b"", b"", b"made\n"]


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILEFOLD_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TILEFOLD_CACHE_LIMIT", "3")
    assert read_cache_settings() == CacheSettings(tmp_path, 3 * MIB)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TILEFOLD_CACHE_DIR", "~/kernels")
    assert read_cache_settings().folder == tmp_path / "kernels"
    monkeypatch.setenv("TILEFOLD_CACHE_LIMIT", "0")
    assert default_store() is None
    monkeypatch.setenv("TILEFOLD_CACHE_LIMIT", "some")
    with pytest.raises(TilefoldError, match="TILEFOLD_CACHE_LIMIT=some is not a number of MiB") as caught:
        default_store()
    assert caught.value.code == "E4003"
    monkeypatch.delenv("TILEFOLD_CACHE_LIMIT")
    monkeypatch.delenv("TILEFOLD_CACHE_DIR")
    settings = read_cache_settings()
    assert settings.folder.name == "tilefold"
    assert settings.limit == 1024 * MIB
    assert store_of(settings) is not None
