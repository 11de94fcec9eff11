# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The common parts of branches and loops of the kernel: conditions, and building their blocks."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from xdsl.ir import Block, SSAValue

from ....base.errors import TilefoldError
from ..scalars.dtypes import Boolean
from ..scalars.values import Bool, Scalar, Value, compare, convert
from ..tracing.state import current
from .carry import put_back, taken
from .variables import Variable


def truth(x: Scalar) -> Bool:
    """Whether a value is true, as a predicate: a number where it is not 0."""
    if isinstance(x, Value) and x.dtype != Boolean:
        return compare("ne", x, 0)
    return convert(x, Boolean)


@contextmanager
def annotate_errors(part: str) -> Generator[None, None, None]:
    """An exception of the user's code says that it was raised while a path was built, not while it ran."""
    try:
        yield
    except (TilefoldError, NameError):
        raise
    except Exception as error:
        note = f"while the kernel was built; {part} is built whether or not it will be executed"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        raise


def built(function: Callable[[], object], block: Block) -> None:
    """Builds a function's operations in a block."""
    with current().inside(block):
        function()


class _Attempt:
    """The operations built within `discarded`; `keep` keeps them."""

    def __init__(self) -> None:
        self.kept = False

    def keep(self) -> None:
        """Keeps the operations."""
        self.kept = True


@contextmanager
def discarded(variables: Sequence[Variable]) -> Generator[_Attempt, None, None]:
    """Within it, operations are built that are forgotten at the end unless they are kept, as are the variables."""
    trees = [taken(variable) for variable in variables]
    block, attempt = Block(), _Attempt()
    with current().inside(block):
        yield attempt
    if attempt.kept:
        for op in list(block.ops):
            block.detach_op(op)
            current().block.add_op(op)
        return
    drop(block)
    for variable, tree in zip(variables, trees, strict=True):
        put_back(variable, tree)


def drop(block: Block) -> None:
    """Erases a block that was built."""
    block.erase(safe_erase=False)


def name_value(value: SSAValue, name: str) -> None:
    """Names a value as a variable is, if the IR can have the name."""
    if name.isidentifier() and name.isascii() and not name.startswith("_"):
        value.name_hint = name
