# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches within functions that torch compiles: the compiled graph ends before them, and another begins afterwards.

Without a mark, torch traces into a launch, down to the compiler. The mark is an attribute of functions, that of
`torch.compiler.disable`, and by a strategy for their code, which it takes up while they run. The decorator itself
imports torch's compiler, which takes a second, and cannot be used before torch is there.
"""

import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_REASON = "launches stay outside graphs; cute.torch_op turns a kernel into an operator, which graphs can contain"


def untraced(function: Callable[P, R]) -> Callable[P, R]:
    """Marks a function as one that torch does not look into where it is called."""
    marked: Any = function
    marked._torchdynamo_disable = True
    marked._torchdynamo_disable_msg = _REASON
    return function


def skip_frames(*functions: Callable[..., object]) -> None:
    """Makes torch, if it is imported, run marked functions and their callees without tracing."""
    torch: Any = sys.modules.get("torch")
    try:
        evaluation = torch._C._dynamo.eval_frame
        skip = evaluation._FrameExecStrategy(evaluation._FrameAction.SKIP, evaluation._FrameAction.SKIP)
        strategy = evaluation.set_code_exec_strategy
    except AttributeError:  # there is no torch, or one that has no such strategies
        return
    for function in functions:
        strategy(function.__code__, skip)
