# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reference in docs/reference/ and the pictures of the code are up to date, and the tables of
docs/performance.md those of the records.
"""

import json
import re
from collections.abc import Iterator
from importlib import import_module
from inspect import isclass, isfunction
from itertools import pairwise
from pathlib import Path

import pytest

from docs.figures import FAMILIES, SHOWING, table, with_tables
from docs.generate import PICTURES, REFERENCE
from docs.generate import pages as made_pages
from tilefold.cutlass.modules import MODULES


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """The text of every page, by file name."""
    return made_pages()


def test_pages_are_up_to_date(pages: dict[str, str]) -> None:
    assert {path.name for path in REFERENCE.glob("*.md")} == set(pages), "run `make docs` and commit docs/reference"
    for name, text in pages.items():
        written = (REFERENCE / name).read_text(encoding="utf-8")
        assert written == text, f"docs/reference/{name} is stale; run `make docs`"


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_pictures_of_the_code_are_up_to_date(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == PICTURES[path]().svg(), f"{path.name} is stale; run `make docs`"


def test_tables_of_records_are_up_to_date() -> None:
    texts = [page.read_text(encoding="utf-8") for page in SHOWING]
    assert texts == [with_tables(page) for page in SHOWING], "tables are stale; run `make docs`"
    assert all(f"<!-- figures {family}: " in "".join(texts) for family in FAMILIES)


def test_tables_have_the_newest_figures(tmp_path: Path) -> None:
    def record(day: int, **values: float) -> None:
        figures = [
            {"name": f"attention, {name}, by wgmma, tilefold", "value": value, "unit": "TFLOP/s", "note": "defaults",
             "base": f"attention, {name}, by wgmma, cuDNN", "ratio": value / 500}
            for name, value in values.items()
        ]  # fmt: skip
        content = {"circumstances": {"date": f"2026-01-0{day}"}, "figures": figures}
        (tmp_path / f"{day}.json").write_text(json.dumps(content))

    record(2, b1=550.0)
    record(1, b1=400.0, b2=600.0)
    rows = table("attention_sm90", tmp_path).splitlines()[3:-1]
    assert rows == [
        "| attention, b1 | 550 TFLOP/s | 1.10 \N{MULTIPLICATION SIGN} cuDNN |",
        "| attention, b2 | 600 TFLOP/s | 1.20 \N{MULTIPLICATION SIGN} cuDNN |",
    ]
    assert table("gemm_sm90", tmp_path) == ""


def test_tables_tell_notes_and_errors_and_leave_out_unequal_work(tmp_path: Path) -> None:
    peer = "cuBLAS (torch._scaled_mm, fast accumulation)"
    figures: list[dict[str, object]] = []
    for name, base in (("fp8 GEMM 4096^3", "cuBLAS (torch._scaled_mm)"), ("fp8 GEMM 4096^3, D in f32", peer)):
        name = f"{name}, by wgmma"
        of_peer: dict[str, object] = {
            "name": f"{name}, {base}",
            "value": 8,
            "unit": "TFLOP/s",
            "note": "warm",
            "error": 5e-3,
            "base": "",
        }
        ours = {**of_peer, "name": f"{name}, tilefold", "base": f"{name}, {base}", "ratio": 1.0, "note": "n=256"}
        figures += [of_peer, ours]
    (tmp_path / "1.json").write_text(json.dumps({"circumstances": {"date": "2026-01-01"}, "figures": figures}))
    for family in ("gemm_sm90", "summary"):
        rows = table(family, tmp_path).splitlines()[3:-1]
        assert rows == [
            "| fp8 GEMM 4096^3, D in f32 | 8 TFLOP/s (n=256, rms error 5.0e-03) "
            f"| 1.00 \N{MULTIPLICATION SIGN} {peer}, warm, rms error 5.0e-03 |"
        ]


def _documented() -> Iterator[tuple[str, str]]:
    """Each name of the API that has a docstring of ours, and those of the members of classes, with the docstring."""
    for target in dict.fromkeys(MODULES.values()):
        module = import_module(target)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if isclass(value) and value.__module__.startswith("tilefold."):
                yield f"{target}.{name}", value.__doc__ or ""
                for own, member in vars(value).items():
                    function = getattr(member, "__func__", member)
                    if not own.startswith("_") and (isfunction(function) or isinstance(function, property)):
                        yield f"{target}.{name}.{own}", function.__doc__ or ""
            elif isfunction(value) and value.__module__.startswith("tilefold."):
                yield f"{target}.{name}", value.__doc__ or ""


def test_docstrings_are_whole(pages: dict[str, str]) -> None:
    """Each paragraph is in the reference, whatever its indentation."""
    text = " ".join(" ".join(page for name, page in pages.items() if name.startswith("python-")).split())
    text = text.replace("\\|", "|")
    docstrings = dict(_documented())
    assert sum("\n\n" in docstring for docstring in docstrings.values()) > 100
    for name, docstring in docstrings.items():
        for paragraph in docstring.split("\n\n"):
            assert " ".join(paragraph.split()) in text, name


def test_an_announced_example_follows(pages: dict[str, str]) -> None:
    """A paragraph that ends in a colon has an example, a list or a table behind it; examples are Python."""
    for name, page in pages.items():
        if not name.startswith("python-"):
            continue
        blocks = re.sub(r"```.*?```", lambda fence: fence[0].replace("\n\n", "\n"), page, flags=re.DOTALL)
        paragraphs = blocks.strip().split("\n\n")
        for paragraph, following in pairwise([*paragraphs, ""]):
            if paragraph.endswith(":"):
                assert following.startswith(("```python\n", "- ", "1. ", "|")), f"{name}: {paragraph}"
            if paragraph.startswith("```python\n"):
                compile(paragraph.removeprefix("```python\n").removesuffix("```"), name, "exec")
            assert not paragraph.startswith(" "), f"{name}: {paragraph}"
