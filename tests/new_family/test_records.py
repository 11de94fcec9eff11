# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Records of packages check themselves, and packages that are wrong are refused by name."""

import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tilefold.base.errors import Code, TilefoldError
from tilefold.base.spaces import GMEM, SMEM, Bytes, Cells, Space, installed_spaces, space_named, space_of_pointer
from tilefold.layout.algebra.core import Layout
from tilefold.layout.atoms.contract import CP_ASYNC_GROUP, Agent, Role
from tilefold.layout.atoms.custom import CustomInstruction, custom_instruction, installed_instructions

from tests.kernels.harness import program_of, simulate
from tests.new_family.kernels import PROGRAM
from tilefold.driver.launches import Changes, read_launches


def _changed(name: str, **changes: Any) -> CustomInstruction:
    record = custom_instruction(name)
    return CustomInstruction(**{
        field: changes.get(field, getattr(record, field))
        for field in ("name", "contract", "places", "effect", "text")
    })  # fmt: skip


def test_the_package_is_found() -> None:
    xmem = space_named("xmem")
    assert xmem is not None
    assert xmem is space_of_pointer("xmem") is import_module("acme").XMEM
    assert set(installed_instructions()) == {
        "acme.alloc", "acme.free", "acme.copy", "acme.mma", "acme.commit", "acme.load", "acme.wait",
    }  # fmt: skip


def test_an_instruction_of_a_warpgroup_is_refused() -> None:
    contract = replace(custom_instruction("acme.wait").contract, agent=Agent.WARPGROUP, ids=Layout(128, 1))
    with pytest.raises(TilefoldError, match="is executed by a warpgroup") as caught:
        _changed("acme.wait", contract=contract)
    assert caught.value.code == Code.ATOM_PACKAGE.id


def test_completion_in_a_group_is_refused() -> None:
    contract = custom_instruction("acme.load").contract
    late = replace(contract.operand(Role.SOURCE), completion=CP_ASYNC_GROUP)
    with pytest.raises(TilefoldError, match="completes source in a group") as caught:
        _changed("acme.load", contract=contract.with_operand(late))
    assert caught.value.code == Code.ATOM_PACKAGE.id


def test_places_are_as_many_as_elements() -> None:
    with pytest.raises(TilefoldError, match="source has 256 elements and 8 places") as caught:
        _changed("acme.load", places={Role.SOURCE: Layout(8, 1)})
    assert caught.value.code == Code.ATOM_INVALID.id


def test_an_element_is_a_cell() -> None:
    contract = custom_instruction("acme.load").contract
    half = replace(contract.operand(Role.SOURCE), element="f16")
    with pytest.raises(TilefoldError, match="has elements of 16 bits in xmem") as caught:
        _changed("acme.load", contract=contract.with_operand(half))
    assert caught.value.code == Code.ATOM_PACKAGE.id


@pytest.mark.parametrize(
    ("name", "form"),
    [("no name", Bytes(32)), ("odd", Bytes(48)), ("odd", Cells(lanes=128, columns=512, warp_lanes=32, unit_bits=24))],
)
def test_a_row_is_one_that_registers_can_address(name: str, form: Bytes | Cells) -> None:
    fields: dict[str, Any] = {field: getattr(SMEM, field) for field in SMEM.__dataclass_fields__}
    fields |= {"name": name, "form": form}
    with pytest.raises(TilefoldError, match="units have a power of two of bits") as caught:
        Space(**fields)
    assert caught.value.code == Code.ATOM_PACKAGE.id


WRONG = {
    "a name that is taken": ("def rows():\n    return [GMEM]\n", "there already is a space gmem"),
    "another record": ("def rows():\n    return [1]\n", "int is not a Space"),
    "no function": ("", "has no attribute 'rows'"),
    "an error": ("def rows():\n    raise ValueError('broken')\n", "ValueError: broken"),
}


@pytest.mark.parametrize(("text", "said"), list(WRONG.values()), ids=list(WRONG))
def test_a_wrong_package_is_named(text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "wrong"
    info = folder / "wrong-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "wrong.py").write_text(f"from tilefold.base.spaces import GMEM\n{text}")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wrong\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[tilefold.spaces]\nmine = wrong:rows\n")
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.delitem(sys.modules, "wrong", raising=False)
    installed_spaces.cache_clear()
    assert space_named("gmem") is GMEM  # a known name needs no package
    with pytest.raises(TilefoldError) as caught:
        space_named("ymem")
    assert caught.value.code == Code.ATOM_PACKAGE.id
    assert "of wrong" in caught.value.message
    assert said in caught.value.message


def test_columns_run_out() -> None:
    place = '    tile.instruction "acme.alloc"(%slot : !slot)\n'
    more = f"    %c17 = arith.constant 17 : index\n    scf.for %i = %c0 to %c17 step %c1 {{\n{place}    }}\n"
    program = program_of(PROGRAM.replace(place, more))
    (launch,) = read_launches(program.module, program.source, Changes())
    with pytest.raises(TilefoldError, match="allocates 32 columns of xmem, of which 512 of 512 are allocated"):
        simulate(program, launch, "instr")


def test_blocks_have_their_own_cells() -> None:
    """Two blocks of a cluster compute the same, and one of them writes the result."""
    text = PROGRAM.replace("threads(32) {", "threads(32) cluster(2) {").replace(
        "@multiply grid(1)", "@multiply grid(4)"
    )
    result = "    scf.for %n = %c0 to %c8 step %c1 {\n      %d ="
    begin, _, end = text.partition(result)
    loop, _, rest = end.partition("    }\n")
    mine = f"    %block = gpu.block_id x\n    %mine = arith.cmpi eq, %block, %c0 : index\n    scf.if %mine {{\n{result}"
    program = program_of(f"{begin}{mine}{loop}    }}\n    }}\n{rest}")
    (launch,) = read_launches(program.module, program.source, Changes())
    after = simulate(program, launch, "instr").after
    a, b, c, d = (after[name].T.astype("f8") for name in "ABCD")
    assert abs(d - (c + 2 * a @ b.T)).max() < 1e-3
