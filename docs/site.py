# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the site of the documentation: `python -m docs.site`, or `make docs-site`.

The pages of docs/ are written for a reader of the repository. This module copies them to build/site/pages as MkDocs
wants them: blocks with a file's name get a title, README.md becomes the first page, and each file of the repository
that a page links to becomes a page, so the site needs no other host. MkDocs then builds build/site/html, and fails on
a link or an anchor that leads nowhere.
"""

import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "site"
REFERENCE = "reference"
"""The entry of `NAVIGATION` that stands for the generated pages."""

NAVIGATION: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "Home": {"": "index.md"},
        "Learn": {
            "The path": "learn.md",
            "1. Layouts": "layouts.md",
            "2. Copy": "tutorial.md",
            "3. GEMM": "gemm.md",
            "4. Hopper": "hopper.md",
            "5. Attention": "attention.md",
        },
        "How do I \N{HORIZONTAL ELLIPSIS}": {"": "how-do-i.md"},
        "Gallery": {"": "gallery.md"},
        "Guide": {
            "Kernels in Python": "python.md",
            "Launches": "runtime.md",
            "The library of kernels": "kernels.md",
            "The .cute file": "language.md",
            "From CuTe C++": "from-cute-cpp.md",
            "From CuTe programs in Python": "from-cute-dsl.md",
            "Host programs": "host.md",
            "PTX": "ptx.md",
            "GPUs": "gpu.md",
            "Blackwell": "blackwell.md",
            "Mistakes with tensor memory": "blackwell-mistakes.md",
            "Editors": "editors.md",
            "Agents": "agents.md",
        },
        "Faults and speed": {
            "Debugging": "debugging.md",
            "Faults of public kernels": "found.md",
            "The simulator": "simulator.md",
            "Profiling": "profiling.md",
            "Performance": "performance.md",
            "Comparison with other tools": "comparison.md",
        },
        "Compiler": {
            "Architecture": "architecture.md",
            "Passes": "passes.md",
            "Extending": "extending.md",
            "Testing": "testing.md",
            "Conformance": "conformance.md",
            "Contributing": "CONTRIBUTING.md",
            "Security": "SECURITY.md",
            "Changes": "CHANGELOG.md",
        },
        "Reference": {"": REFERENCE},
    }
)
"""The tabs of the site, each with its pages by title; a tab of one page has no titles."""

AT_THE_ROOT = {"README.md": "index.md"} | {name: name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")}
_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)(?: (?P<name>\S+))?\n(?P<body>.*?)^(?P=indent)```[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_LINK = re.compile(r"`(?:[^`\n]|\n(?!\n))*`|(?<=\]\()(?P<target>[^)\s]+)(?=\))")
"""The target of a link, or inline code, in which nothing is one."""
_LEXERS = {"mlir": "cute", "elisp": "emacs-lisp", ".py": "python", ".cute": "cute", ".toml": "toml"}
"""The lexers of languages and of files, where they have another name."""


def page_of(path: str) -> str:
    """The page of the site for a path of the repository: `docs/gemm.md` is `gemm.md`, a file outside docs/ a page
    under `files/`.
    """
    if path in AT_THE_ROOT:
        return AT_THE_ROOT[path]
    if path == "docs/reference":
        return "reference/README.md"
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"files/{path}" if path.endswith(".md") else f"files/{path}.md"


def rewritten(text: str, path: str, linked: Callable[[str], None] = lambda _: None) -> str:
    """A page of the repository at `path` as a page of the site. Calls `linked` with each path that it links to."""
    here = posixpath.dirname(page_of(path))

    def link(match: re.Match[str]) -> str:
        target, mark, anchor = (match["target"] or "").partition("#")
        if not target or ":" in target:
            return match[0]
        to = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        linked(to)
        return posixpath.relpath(page_of(to), here or ".") + mark + anchor

    parts: list[str] = []
    end = 0
    for fence in _FENCE.finditer(text):
        parts.append(_LINK.sub(link, text[end : fence.start()]))
        language = _LEXERS.get(fence["language"], fence["language"])
        title = f' title="{fence["name"]}"' if fence["name"] else ""
        parts.append(f"{fence['indent']}```{language}{title}\n{fence['body']}{fence['indent']}```")
        end = fence.end()
    return "".join([*parts, _LINK.sub(link, text[end:])])


def navigation(reference: Mapping[str, str]) -> list[object]:
    """The navigation as MkDocs reads it, with the titles of the generated pages by the names of their files."""
    made: list[object] = []
    for tab, pages in NAVIGATION.items():
        if list(pages.values()) == [REFERENCE]:
            named = sorted(reference.items(), key=_index_first)
            made.append({tab: [{title: f"{REFERENCE}/{name}"} for name, title in named]})
        elif list(pages) == [""]:
            made.append({tab: pages[""]})
        else:
            made.append({tab: [{title: page} for title, page in pages.items()]})
    return made


def write_pages(folder: Path) -> None:
    """Writes every page of the site into a folder, and the pictures."""
    written: set[str] = set()
    waiting = [*AT_THE_ROOT, *(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]
    while waiting:
        path = waiting.pop()
        source, target = ROOT / path, folder / page_of(path)
        if path in written or not source.exists() or source == ROOT / "docs" / "reference":
            continue  # MkDocs reports a link to a file that does not exist
        written.add(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.startswith("docs/") and source.suffix != ".md":
            shutil.copyfile(source, target)
        else:
            target.write_text(_text(source, path, waiting.append), encoding="utf-8")


def _text(source: Path, path: str, linked: Callable[[str], None]) -> str:
    if source.is_dir():
        names = [f"- `{each.name}`" for each in sorted(source.iterdir()) if not each.name.startswith("__")]
        return _unsearched(path, "\n".join(names))
    text = source.read_text(encoding="utf-8")
    if source.suffix == ".md":
        return rewritten(text, path, linked)
    return _unsearched(path, f"````{_LEXERS.get(source.suffix, 'text')}\n{text}````")


def _unsearched(path: str, text: str) -> str:
    """A page for a file of the repository, which the search leaves out."""
    return f"---\nsearch:\n  exclude: true\n---\n\n# `{path}`\n\n{text}\n"


def _index_first(page: tuple[str, str]) -> tuple[bool, str]:
    return page[0] != "README.md", page[0]


def _title(page: Path) -> str:
    """The heading of a generated page, without the words that all pages of its kind share."""
    heading = next(line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("# "))
    return heading.removeprefix("# ").removeprefix("Python: ").replace("`", "")


def main() -> int:
    """Writes the pages and runs MkDocs on them; its exit status."""
    shutil.rmtree(BUILD, ignore_errors=True)
    write_pages(BUILD / "pages")
    reference = {page.name: _title(page) for page in (BUILD / "pages" / REFERENCE).glob("*.md")}
    settings = {
        "INHERIT": str(ROOT / "mkdocs.yml"),
        "docs_dir": "pages",
        "site_dir": "html",
        "nav": navigation(reference),
        "not_in_nav": "/files/",
    }
    (BUILD / "mkdocs.yml").write_text(json.dumps(settings, indent=2), encoding="utf-8")  # JSON is YAML, too
    # --quiet would not count warnings, which --strict takes for errors
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "-f",
        str(BUILD / "mkdocs.yml"),
    ]
    status = subprocess.run(command, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}).returncode
    if not status:
        print(f"the site: {(BUILD / 'html' / 'index.html').relative_to(ROOT)}")
    return status


if __name__ == "__main__":
    sys.exit(main())
