# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All mutants by name."""

from collections.abc import Mapping
from types import MappingProxyType

from tests.mutants.cute_ir import CUTE_IR
from tests.mutants.emission import EMITTED
from tests.mutants.mutant import Mutant
from tests.mutants.to_atoms import TO_ATOMS
from tests.mutants.to_index import TO_INDEX
from tests.mutants.to_instr import TO_INSTR

_ALL = (*TO_ATOMS, *TO_INDEX, *TO_INSTR, *CUTE_IR, *EMITTED)
MUTANTS: Mapping[str, Mutant] = MappingProxyType({mutant.name: mutant for mutant in _ALL})
assert len(MUTANTS) == len(_ALL), "two mutants have one name"
