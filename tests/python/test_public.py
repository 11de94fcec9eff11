# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The names of `tilefold.cute`: each says what it is."""

import inspect
from types import ModuleType

import pytest

from tilefold import cute


@pytest.mark.parametrize("module", [cute, cute.arch, cute.nvgpu, cute.pipeline, cute.utils])
def test_every_public_name_has_a_docstring(module: ModuleType) -> None:
    found = {name: getattr(module, name) for name in module.__all__}
    described = {name: each for name, each in found.items() if callable(each)}
    assert [name for name, each in described.items() if not (inspect.getdoc(each) or "").strip()] == []
    assert len(described) > 3


@pytest.mark.parametrize("module", [cute, cute.arch, cute.nvgpu, cute.pipeline, cute.utils])
def test_a_shell_offers_the_public_names_alone(module: ModuleType) -> None:
    assert dir(module) == sorted(module.__all__)
    assert not [name for name in dir(module) if name.startswith("_")]


def test_functions_made_from_a_table_have_their_own_names() -> None:
    assert (cute.exp2.__name__, cute.rsqrt.__name__) == ("exp2", "rsqrt")
    assert (cute.exp2.__doc__ or "").startswith("2 to the power of x, for a number")


def test_options_of_kernels_are_parameters() -> None:
    assert [*inspect.signature(cute.kernel).parameters][1:] == [
        "name", "min_blocks", "max_registers", "preprocessor", "preprocess", "cluster", "non_portable", "contract",
    ]  # fmt: skip
