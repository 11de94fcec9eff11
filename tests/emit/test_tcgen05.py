# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every form of every instruction of tcgen05: LLVM writes it, the assembler accepts it, and it is read back."""

from collections.abc import Sequence

import pytest
from tilefold.base.target import Target
from tilefold.compiler.machine.assemble import assemble
from tilefold.compiler.ptx.stage import read_back
from tilefold.compiler.reports.kernel_report import count_instructions
from tilefold.dialects.ptx import EntryOp, PtxOp
from tilefold.passes.errors import LoweringError
from xdsl.dialects.builtin import ModuleOp

from tests.emit.examples import ARGS, SHARED
from tests.emit.harness import kernel, parse, ptx_of
from tests.emit.tcgen05_examples import EXACT, INTEGERS, REDUCING, TCGEN05

SM_100A, SM_103A = Target("sm_100a"), Target("sm_103a")


def _module(examples: Sequence[tuple[str, str]]) -> str:
    """Kernels of these bodies: those of a pair are apart, since a kernel has one group."""
    text = "".join(
        f"  ptx.entry @k{index}({ARGS}) threads(32, 4) shared({SHARED}) {{\n{body}\nptx.ret\n}}\n"
        for index, (_, body) in enumerate(examples)
    )
    return f"gpu.module @kernels {{\n{text}}}\n"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("examples", "target"),
    [((*TCGEN05, *EXACT, INTEGERS), SM_100A), ((*TCGEN05, *EXACT, *REDUCING), SM_103A), (TCGEN05, Target("sm_100f"))],
    ids=["sm_100a", "sm_103a", "sm_100f"],
)
def test_every_form_assembles_and_is_read_back(examples: Sequence[tuple[str, str]], target: Target) -> None:
    module = parse(_module(examples))
    ptx = ptx_of(_module(examples), target)
    assert len(assemble(ptx, target).kernels) == len(examples)
    again = read_back(module, ptx, "k.ptx")
    assert _mnemonics(again) == _mnemonics(module)


def _mnemonics(module: ModuleOp) -> list[list[str | None]]:
    """The instructions of tcgen05 of each kernel."""
    return [
        [op.mnemonic() for op in entry.walk() if isinstance(op, PtxOp) and ".tcgen05." in op.name and op.mnemonic()]
        for entry in module.walk()
        if isinstance(entry, EntryOp)
    ]


def test_instructions_are_those_that_mnemonics_name() -> None:
    for _, body in (*TCGEN05[:3], *[x for x in TCGEN05 if "mma" in x[0] or "cp" in x[0]][::7]):
        text = kernel(body, ARGS, shared=SHARED)
        counts = count_instructions(ptx_of(text, SM_100A))["k"]
        for op in parse(text).walk():
            if isinstance(op, PtxOp) and ".tcgen05." in op.name and op.mnemonic() is not None:
                assert counts[op.mnemonic() or ""] == 1


@pytest.mark.parametrize(
    ("example", "target", "said"),
    [
        (TCGEN05[0], "sm_100", "is an instruction of single architectures"),
        (TCGEN05[0], "sm_120a", "is an instruction of sm_10x only, not of sm_120a"),
        (TCGEN05[0], "sm_90a", "needs sm_100"),
        (INTEGERS, "sm_103a", "is an instruction of sm_100a only, not of sm_103a"),
        (INTEGERS, "sm_100f", "is an instruction of sm_100a only, not of sm_100f"),
        (EXACT[0], "sm_100f", "is an instruction of sm_100a only, not of sm_100f"),
        (REDUCING[0], "sm_100a", "is an instruction of sm_103a only, not of sm_100a"),
    ],
)
def test_other_targets_are_refused_before_llvm(example: tuple[str, str], target: str, said: str) -> None:
    """LLVM would end the process."""
    with pytest.raises(LoweringError, match=said):
        ptx_of(kernel(example[1], ARGS, shared=SHARED), Target(target))
