# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fragments that lie in local memory instead of registers, as LLVM leaves them, and why: at the accesses whose
index only the run knows, at the operations that take an address, or else at the fragment.
"""

from collections.abc import Iterator, Mapping, Sequence

from xdsl.ir import Operation

from ...dialects.ptx import EntryOp, LocalAllocOp
from ...passes.analysis.local_memory import LocalFragment, local_fragments
from ..emit.ptx_memory import FRAGMENT
from ..frontend.source import Source
from .remarks import Remark, Remarks

_DEPOT = "__local_depot"  # the stack of a kernel in LLVM's PTX; `$` and names of kernels do not begin so


def fragments_in_memory(
    entries: Sequence[EntryOp], llvm: Mapping[str, Sequence[str]]
) -> dict[str, list[LocalFragment]]:
    """The fragments of each kernel of stage `instr` that are in the stack memory `llvm`, the names of it by kernel."""
    found: dict[str, list[LocalFragment]] = {}
    for entry in entries:
        allocs = [op for op in entry.walk() if isinstance(op, LocalAllocOp)]
        known = {fragment.alloc: fragment for fragment in local_fragments(entry)}
        numbers = {int(name.split(".")[1]) for name in llvm.get(entry.sym_name.data, ()) if name.startswith(FRAGMENT)}
        found[entry.sym_name.data] = [
            known.get(alloc, LocalFragment(alloc)) for number, alloc in enumerate(allocs) if number in numbers
        ]
    return found


def fragment_remarks(fragments: Sequence[LocalFragment], source: Source) -> tuple[Remark, ...]:
    """A remark at each place that puts one of the fragments in local memory."""
    remarks = Remarks(source)
    for fragment in fragments:
        for op, text in _reasons(fragment):
            remarks.add("ptx", op, text, "fragment")
    return remarks.all()


def has_stack(ptx: str) -> bool:
    """Whether a kernel of a PTX text has stack memory."""
    return _DEPOT in ptx


def _reasons(fragment: LocalFragment) -> Iterator[tuple[Operation, str]]:
    where = f"all {fragment.bytes} bytes lie in local memory instead of registers"
    for access in fragment.accesses:
        cure = (
            "mark the loops around it {unroll}"
            if access in fragment.by_loops
            else "choose the element by conditions on the index, or keep the elements in shared memory"
        )
        yield access, f"the index is known only at run time, so {where}; {cure}"
    escapes = list(fragment.escapes())
    for op in escapes:
        yield op, f"{op.name} takes the address of a fragment, so {where}"
    if not fragment.accesses and not escapes:
        yield fragment.alloc, f"{where}, although each index is known to the compiler"
