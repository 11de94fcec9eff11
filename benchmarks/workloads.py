# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels that are measured, and how they are built: from `kernels/*.cute` with their parameters."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from tilefold.compiler.params import expand
from tilefold.dialects.target import Target
from tilefold.runtime.artifact import Artifact
from tilefold.runtime.engine import LaunchConfig

from tilefold.launches import Changes, Launch, launches_of
from tilefold.lowering import Program, load

KERNELS = Path(__file__).with_name("kernels")


@dataclass(frozen=True, slots=True)
class Workload:
    """A kernel file with parameters: `size` for the measurement, `small` for a run on the simulator."""

    name: str
    file: str
    size: dict[str, int | str] = field(default_factory=dict[str, int | str])
    small: dict[str, int | str] = field(default_factory=dict[str, int | str])

    def shrunk(self) -> "Workload":
        """The workload at the size for the simulator."""
        return replace(self, size=self.small)

    def loaded(self) -> tuple[Program, Launch]:
        """The program for these parameters, and its one launch."""
        text = (KERNELS / self.file).read_text(encoding="utf-8")
        program = load(expand(text, self.file, {name: str(value) for name, value in self.size.items()}))
        (launch,) = launches_of(program.module, program.source, Changes())
        return program, launch

    def built(self, target: Target) -> tuple[Artifact, LaunchConfig]:
        """The kernel for a GPU, and the launch that its file describes."""
        program, launch = self.loaded()
        return program.artifact(launch.kernel, target), LaunchConfig(launch.grid, launch.block)


COPY_ELEMENTS = 1 << 30
"""Of f32: 4 GiB to read, and as much to write."""
SIDE = 16384
"""Rows and columns of the f16 matrix that is transposed."""

COPY = Workload("copy", "copy.cute", {"N": COPY_ELEMENTS}, {"N": 8192})
TRANSPOSES = (
    Workload("transpose, 2-byte reads of shared memory", "transpose.cute", {"N": SIDE}, {"N": 256}),
    Workload(
        "transpose by ldmatrix",
        "transpose_ldmatrix.cute",
        {"ROWS": SIDE, "COLUMNS": SIDE},
        {"ROWS": 256, "COLUMNS": 128},
    ),
)
WORKLOADS = (COPY, *TRANSPOSES)
