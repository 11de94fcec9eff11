# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Public names take the parameters by which programs call them, in their order."""

import inspect
from functools import reduce
from importlib import import_module
from inspect import Parameter
from typing import Any

import pytest

import tilefold.cutlass as cutlass
from tests.cutlass.signatures import SIGNATURES


def named(holder: Any, part: str) -> Any:
    return getattr(holder, part) if hasattr(holder, part) else import_module(f"{holder.__name__}.{part}")


@pytest.mark.parametrize("line", SIGNATURES.strip().splitlines())
def test_parameters(line: str) -> None:
    name, *parameters = line.split()
    places, _, keywords = (part.split() for part in " ".join(parameters).partition("*"))
    function = reduce(named, name.split("."), cutlass)
    taken = list(inspect.signature(function).parameters.values())
    by_place = [p.name for p in taken if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    assert len(by_place) >= len(places) or any(p.kind is Parameter.VAR_POSITIONAL for p in taken)
    assert all(expected in ("_", given) for expected, given in zip(places, by_place, strict=False)), by_place
    by_name = {p.name for p in taken if p.kind in (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)}
    assert set(keywords) <= by_name
