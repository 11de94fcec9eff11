# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pages of the site, as docs/site.py prepares them. `make docs-site` builds it, and so does a workflow."""

import re
from pathlib import Path

import pytest

from docs.site import AT_THE_ROOT, NAVIGATION, REFERENCE, navigation, page_of, rewritten, write_pages
from tests.project.tree import ROOT

_LINK = re.compile(r"\]\((?P<target>[^)\s:]+)\)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    write_pages(folder)
    return folder


def test_navigation_has_every_page_once() -> None:
    named = [page for pages in NAVIGATION.values() for page in pages.values()]
    written = [path.name for path in (ROOT / "docs").glob("*.md")]
    assert sorted(named) == sorted([*written, *AT_THE_ROOT.values(), REFERENCE])


def test_navigation_begins_the_reference_with_its_list() -> None:
    made = navigation({"atoms.md": "Atoms", "README.md": "Reference"})
    assert made[-1] == {"Reference": [{"Reference": "reference/README.md"}, {"Atoms": "reference/atoms.md"}]}
    assert {"Gallery": "gallery.md"} in made


def test_links_lead_to_pages_of_the_site() -> None:
    assert rewritten("[a](docs/gemm.md#x) [b](examples/a.cute)", "README.md") == (
        "[a](gemm.md#x) [b](files/examples/a.cute.md)"
    )
    assert rewritten("[a](../README.md) [b](#x) [c](https://xdsl.dev)", "docs/gemm.md") == (
        "[a](index.md) [b](#x) [c](https://xdsl.dev)"
    )
    assert rewritten("`[a](b)` [`c`](gpu.md)", "README.md") == "`[a](b)` [`c`](files/gpu.md)"
    assert page_of("docs/reference") == "reference/README.md"
    assert rewritten("[a](../../docs/gpu.md)", "benchmarks/results/a.md") == "[a](../../../gpu.md)"


def test_links_report_the_files_that_they_need() -> None:
    linked: list[str] = []
    rewritten("[a](../base/errors.py) [b](gpu.md)", "docs/gemm.md", linked.append)
    assert linked == ["base/errors.py", "docs/gpu.md"]


def test_blocks_keep_their_text_and_get_titles() -> None:
    text = "```python axpy.py\nx[0](y)\n```\n\n  ```mlir\n  a\n  ```\n"
    wanted = '```python title="axpy.py"\nx[0](y)\n```\n\n  ```cute\n  a\n  ```\n'
    assert rewritten(text, "docs/gemm.md") == wanted


def test_every_page_and_picture_that_is_linked_is_written(site: Path) -> None:
    for page in site.rglob("*.md"):
        text = re.sub(r"^ *`{3,}.*?^ *`{3,} *$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        text = re.sub(r"`[^`]*`", "", text)
        for match in _LINK.finditer(text):
            target = match["target"].partition("#")[0]
            assert not target or (page.parent / target).exists(), f"{page.relative_to(site)}: {match['target']}"
    assert (site / "pictures" / "architecture.svg").is_file()
    assert "search:" in (site / "files" / "pyproject.toml.md").read_text(encoding="utf-8")
