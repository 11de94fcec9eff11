# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files of results: their mode, links to them, long names, and several at once."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from tilefold.base.errors import TilefoldError

from tilefold.commands.cli import main
from tilefold.driver.output import write_files, write_output


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("bits", [0o600, 0o640, 0o755, 0o777])
def test_a_file_that_is_replaced_keeps_its_mode(bits: int, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for path in (one, two):
        path.write_text("before")
        path.chmod(bits)
    write_output("after", str(one))
    write_files({str(one): "after", str(two): b"after"})
    assert [(path.read_text(), mode(path)) for path in (one, two)] == [("after", bits)] * 2
    assert names(tmp_path) == ["one", "two"]


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_mode_that_the_process_asks_for(mask: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        write_output("new", str(tmp_path / "file"))
    finally:
        os.umask(before)
    assert mode(tmp_path / "file") == 0o666 & ~mask


@pytest.mark.parametrize("exists", [True, False], ids=["to a file", "to a new file"])
def test_a_link_stays_and_its_target_is_written(exists: bool, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link, chain = tmp_path / "elsewhere" / "target", tmp_path / "link", tmp_path / "chain"
    link.symlink_to("elsewhere/target")
    chain.symlink_to(link)
    if exists:
        target.write_text("before")
        target.chmod(0o604)
    write_output("after", str(chain))
    assert target.read_text() == "after"
    assert not target.is_symlink()
    assert (os.readlink(link), os.readlink(chain)) == ("elsewhere/target", str(link))
    assert not exists or mode(target) == 0o604
    assert names(tmp_path / "elsewhere") == ["target"]
    assert names(tmp_path) == ["chain", "elsewhere", "link"]


def test_links_in_a_circle_and_into_no_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    (tmp_path / "c").symlink_to(tmp_path / "missing" / "file")
    for name, reason in (("a", "Too many levels of symbolic links"), ("c", "No such file or directory")):
        with pytest.raises(TilefoldError, match=f"{name}: {reason}") as caught:
            write_output("text", str(tmp_path / name))
        assert caught.value.code == "E4002"
    assert names(tmp_path) == ["a", "b", "c"]


@pytest.mark.parametrize("name", ["n" * 250, "n" * 255, "ü" * 125, ".cute"])
def test_names_as_long_as_the_system_allows(name: str, tmp_path: Path) -> None:
    for _ in range(2):
        write_output("text", str(tmp_path / name))
    write_files({str(tmp_path / name): "text", str(tmp_path / "other"): "text"})
    assert names(tmp_path) == sorted([name, "other"])


def test_a_pipe_is_written_as_it_is(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    write_output("through a pipe", f"/dev/fd/{writer}")
    os.close(writer)
    with open(reader) as file:
        assert file.read() == "through a pipe"


def before(folder: Path) -> dict[str, str | bytes]:
    """Two files in a folder, of which the first is there, and a third, which cannot be written."""
    (folder / "a").write_text("before")
    (folder / "c").mkdir()
    return {str(folder / name): "after" for name in "abc"}


def test_of_several_files_none_is_written_where_one_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(TilefoldError, match="c: is a directory"):
        write_files(before(tmp_path))
    assert (tmp_path / "a").read_text() == "before"
    assert names(tmp_path) == ["a", "c"]


def refuse(*_: object) -> None:
    raise OSError(95, "Operation not supported")


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_files_that_have_their_names_come_back_where_another_fails(
    links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = {str(tmp_path / name): "after" for name in "abcd"}
    for name in "acd":
        (tmp_path / name).write_text("before")
        (tmp_path / name).chmod(0o640)
    inodes = [(tmp_path / name).stat().st_ino for name in "acd"]
    replace: Callable[[str, str], None] = os.replace
    if not links:
        monkeypatch.setattr(os, "link", refuse)

    def fail(new: str, target: str) -> None:
        if target.endswith("/c") and "tilefold" in new:
            refuse()
        replace(new, target)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(TilefoldError, match="c: Operation not supported"):
        write_files(contents)
    assert names(tmp_path) == ["a", "c", "d"]
    assert {((tmp_path / name).read_text(), mode(tmp_path / name)) for name in "acd"} == {("before", 0o640)}
    assert not links or inodes == [(tmp_path / name).stat().st_ino for name in "acd"]
    monkeypatch.setattr(os, "replace", replace)
    write_files(contents)
    assert {(tmp_path / name).read_text() for name in "abcd"} == {"after"}
    assert names(tmp_path) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("words", "file", "said"),
    [
        (["layout", "8:1"], "x.txt", "8:1"),
        (["layout", "8:1"], "x.svg", "<svg"),
        (["layout", "--operations"], "x.txt", "composition"),
        (["explain", "E3205"], "x.txt", "Cause"),
        (["explain"], "x.txt", "E3205"),
        (["passes"], "x.txt", "fold-layouts"),
        (["show", "tiled-mma", "--atom", "SM80_16x8x16_F32F16F16F32_TN"], "x.txt", "ThrID"),
        (["show", "tiled-mma", "--atom", "SM80_16x8x16_F32F16F16F32_TN"], "x.svg", "<svg"),
    ],
)
def test_each_command_writes_to_a_file(
    words: list[str], file: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "-o", str(tmp_path / file)]) == 0
    assert said in (tmp_path / file).read_text()
    assert said not in capsys.readouterr().out


@pytest.mark.parametrize("command", ["run", "bisect", "check", "compile", "reduce"])
def test_a_command_that_fails_leaves_the_file(command: str, tmp_path: Path) -> None:
    (tmp_path / "broken.cute").write_text("broken {\n")
    (tmp_path / "out").write_text("before")
    assert main([command, str(tmp_path / "broken.cute"), "-o", str(tmp_path / "out")]) == 1
    assert (tmp_path / "out").read_text() == "before"
    assert names(tmp_path) == ["broken.cute", "out"]


def test_text_in_a_page_has_the_style_of_a_report(tmp_path: Path) -> None:
    assert main(["explain", "E3205", "-o", str(tmp_path / "x.html")]) == 0
    written = (tmp_path / "x.html").read_text()
    assert "prefers-color-scheme: dark" in written
    assert "pre { white-space: pre-wrap" in written
