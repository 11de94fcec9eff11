# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Serves one module of the compiler with a changed text, to a process that has not imported it yet. No file changes.

Nothing of the compiler may be imported here.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from types import CodeType, ModuleType

from tests.mutants.mutant import Mutant
from tests.project.tree import ROOT, module_name


class _Loader(SourceFileLoader):
    """Compiles the changed text; the cache of byte code is neither read nor written."""

    def __init__(self, fullname: str, path: str, mutant: Mutant) -> None:
        super().__init__(fullname, path)
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        return compile(changed(self._mutant), self.path, "exec", dont_inherit=True)


@dataclass(frozen=True)
class _Finder(MetaPathFinder):
    mutant: Mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != module_of(self.mutant):
            return None
        where = str(ROOT / self.mutant.file)
        return spec_from_file_location(fullname, where, loader=_Loader(fullname, where, self.mutant))


def module_of(mutant: Mutant) -> str:
    """The name by which the changed module is imported."""
    return module_name(ROOT / mutant.file)


def changed(mutant: Mutant) -> str:
    """The changed text of the module. ValueError unless the old text occurs in it once."""
    text = (ROOT / mutant.file).read_text()
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.name}: {mutant.old!r} occurs {text.count(mutant.old)} times in {mutant.file}")
    return text.replace(mutant.old, mutant.new)


def plant(mutant: Mutant) -> None:
    """From now on, the module that the mutant changes is imported as it says."""
    assert module_of(mutant) not in sys.modules, "the module is imported already"
    sys.meta_path.insert(0, _Finder(mutant))
