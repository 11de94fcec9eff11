# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the pages name exists: links and their anchors, files, make targets, error codes, options, and modules."""

import ast
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from tilefold.base.errors import Code

from tests.names import OBJECT, OPERATION, OPTION, exists, is_known, options
from tests.project.tree import PRODUCT, ROOT

from .pages import anchors, blocks, pages, prose

MAX_WIDTH = 120
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_CODE = re.compile(r"`(?P<code>[^`\n]+)`")
_PATH = re.compile(rf"(?:{'|'.join((*PRODUCT, 'tests', 'examples', 'benchmarks', 'docs'))})/[\w./-]*")
_MAKE = re.compile(r"\bmake ([a-z-]+)")
_CODE_ID = re.compile(r"\bE\d{4}\b")
_MODULE = re.compile(r"\btilefold(?:\.[a-z_]\w*)+")


def _name(page: Path) -> str:
    return page.stem


def _code(page: Path) -> list[str]:
    """The inline code of a page, and its blocks of commands."""
    text = page.read_text()
    inline = [match["code"] for match in _CODE.finditer(prose(text))]
    return inline + [block.text for block in blocks(text) if block.language == "sh"]


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    for match in _LINK.finditer(prose(page.read_text())):
        target, _, anchor = match["target"].partition("#")
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path = page if not target else (page.parent / target).resolve()
        assert path.exists(), f"{page.name}: link to {target}"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path.read_text()), f"{page.name}: there is no heading #{anchor} in {path.name}"


def test_readme_leads_to_every_page_and_example() -> None:
    linked = {match["target"] for match in _LINK.finditer((ROOT / "README.md").read_text())}
    examples = [*(ROOT / "examples").glob("*.cute"), *(ROOT / "examples" / "python").glob("*.py")]
    for path in (*(ROOT / "docs").glob("*.md"), *examples):
        if path.suffix == ".py" and "def main(" not in path.read_text():
            continue  # what examples share
        assert str(path.relative_to(ROOT)) in linked, f"README.md has no link to {path.name}"


def test_figures_of_the_readme_are_those_of_the_results() -> None:
    text = (ROOT / "README.md").read_text()
    section = text[text.index("## Figures") : text.index("## Documentation")]
    results = [ROOT / target for target in _LINK.findall(section) if target.startswith("benchmarks/results/")]
    section = re.sub(r"<!-- figures .*?<!-- end of figures -->", "", section, flags=re.DOTALL)  # generated
    rows = [line.rstrip("| ") for line in section.splitlines() if line.startswith("| ") and "measured" not in line]
    assert rows
    for row in rows:
        assert any(row in path.read_text() for path in results), row


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_named_files_exist(page: Path) -> None:
    for code in _code(page):
        if _PATH.fullmatch(code):
            assert (ROOT / code).exists(), f"{page.name}: {code}"


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_named_make_targets_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for code in _code(page):
        for match in _MAKE.finditer(code):
            assert re.search(rf"^{match[1]}:", makefile, re.MULTILINE), f"{page.name}: make {match[1]}"


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_named_error_codes_exist(page: Path) -> None:
    known = {code.id for code in Code}
    assert set(_CODE_ID.findall(prose(page.read_text()))) <= known


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_named_operations_and_types_exist(page: Path) -> None:
    text = page.read_text()
    for code in [*_code(page), *(block.text for block in blocks(text) if block.language == "mlir")]:
        for name in OPERATION.findall(code):
            assert is_known(name), f"{page.name}: {name}"


@pytest.mark.parametrize("name", ["from-cute-cpp", "from-cute-dsl", "python", "runtime", "tutorial"])
def test_named_objects_of_cute_exist(name: str) -> None:
    page = ROOT / "docs" / f"{name}.md"
    for code in _code(page):
        for found in OBJECT.findall(code):
            assert exists("tilefold.cute", found.split(".")[1:]), f"{page.name}: {found}"


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_named_options_of_the_command_exist(page: Path) -> None:
    for match in _CODE.finditer(prose(page.read_text())):
        code = match["code"]
        if code.startswith(("--", "tilefold ")):
            for option in OPTION.findall(code):
                assert option in options(), f"{page.name}: {option}"


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_named_modules_exist(page: Path) -> None:
    for match in _CODE.finditer(prose(page.read_text())):
        for module in _MODULE.findall(match["code"]):
            parts = module.split(".")
            found = any(exists(".".join(parts[:n]), parts[n:]) for n in range(len(parts), 0, -1))
            assert found, f"{page.name}: {module}"


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_python_blocks_parse_and_import_what_exists(page: Path) -> None:
    examples = {path.stem for path in (ROOT / "examples" / "python").glob("*.py")}
    for block in blocks(page.read_text()):
        if block.language != "python":
            continue
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.ImportFrom) and node.module:
                if node.module in examples or find_spec(node.module.partition(".")[0]) is None:
                    continue  # the block runs, so it has the names; or it is for those who have the package
                for alias in node.names:
                    assert exists(node.module, [alias.name]), f"{page.name}:{block.line}: {node.module}.{alias.name}"


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_lines_are_short_enough_to_read(page: Path) -> None:
    """Those of the text; what a command prints is as long as it is."""
    for number, line in enumerate(prose(page.read_text()).splitlines(), 1):
        assert len(line) <= MAX_WIDTH or line.startswith("|"), f"{page.name}:{number}: {len(line)} characters"


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_a_bare_cute_says_which(page: Path) -> None:
    """docs/architecture.md, Folders: five things have the name."""
    text = " ".join(prose(page.read_text()).split())
    for match in re.finditer(r"`cute`", text):
        before = text[max(match.start() - 20, 0) : match.start()]
        says = re.search(
            r"(\b(dialects?|stages?|language|named)|stages? \S+ (and|or|to|from)|six stages, from|\|) $", before
        )
        assert says, f"{page.name}: …{text[match.start() - 40 : match.end() + 30]}…"
