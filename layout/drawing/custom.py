# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of the instructions that packages define: where each matrix has its elements, and whose they are."""

from ...base.spaces import LANE_SHIFT, Bytes, Cells
from ..algebra.core import Layout, size
from ..atoms.contract import Operand
from ..atoms.custom import CustomInstruction, Given
from .drawings import EMPTY, Table, make_thread_value_table


def instruction_tables(record: CustomInstruction) -> tuple[Table, ...]:
    """A table for each matrix. LayoutError (E0209) for one that is too large to draw."""
    return tuple([_table(record, o) for o in record.operands if record.given(o) is Given.MATRIX])


def _table(record: CustomInstruction, operand: Operand) -> Table:
    title, place = f"{operand.role.value} in {operand.spaces[0]}", record.places.get(operand.role)
    if place is None:
        return make_thread_value_table(f"{title}: elements", operand.layout)
    match operand.spaces[0].form:
        case Bytes():
            return make_thread_value_table(f"{title}: elements", operand.layout, place.shape)
        case Cells():
            return _cell_table(f"{title}: lanes down, columns across", operand.layout, place)


def _cell_table(title: str, holders: Layout, place: Layout) -> Table:
    """The cells of a matrix, each with the thread and the value that has it."""
    whose = make_thread_value_table(title, holders, size(place)).rows
    cells = {divmod(place(i), 1 << LANE_SHIFT): whose[i][0] for i in range(size(place))}
    lanes, columns = (1 + max(cell[mode] for cell in cells) for mode in (0, 1))
    rows = tuple([tuple([cells.get((lane, column), EMPTY) for column in range(columns)]) for lane in range(lanes)])
    return Table(title, rows)
