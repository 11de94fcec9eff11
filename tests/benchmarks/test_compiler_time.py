# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler and the simulator stay within three times their targets, on any machine that runs the tests.

`python -m benchmarks.compiler` takes the figures themselves. The fastest of a few runs counts, so that a busy machine
does not decide.
"""

from benchmarks import compiler


def test_compiling_in_a_warm_process() -> None:
    assert compiler.warm_milliseconds(3) <= compiler.SLACK * compiler.WARM_TARGET_MS


def test_the_whole_command_line() -> None:
    assert compiler.command_seconds(2) <= compiler.SLACK * compiler.COMMAND_TARGET_S


def test_simulating_a_tile() -> None:
    assert min(compiler.simulate_tiles() for _ in range(2)) <= compiler.SLACK * compiler.TILE_TARGET_S
