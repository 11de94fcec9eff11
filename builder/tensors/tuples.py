# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tuples of integers and their leaves, by the functions of CuTe (int_tuple.hpp, util/tuple.hpp)."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from ...layout.algebra.core import AnyLayout, ComposedLayout, Layout, plain_layout
from ...layout.algebra.integers import AnyTuple
from ...layout.algebra.integers import ScaledBasis as Basis
from ...layout.algebra.inttuple import flatten, zip_modes
from ..scalars.values import Value
from .coordinates import as_tuple, tuples
from .modes import append, get, prepend
from .tensor_base import AnyTensor


def transform_leaf(f: Callable[..., Any], *terms: Any) -> Any:
    """Applies a function to the leaves of tuples that are nested alike. Raises LayoutError (E0201) for others."""
    first, *rest = map(tuples, terms)
    if not isinstance(first, tuple):
        return f(first, *rest)
    modes = as_tuple(first)
    pairs = [[y for _, y in zip_modes(modes, other)] for other in rest]
    return tuple([transform_leaf(f, *parts) for parts in zip(modes, *pairs, strict=True)])


def transform_apply(*terms: object, f: Callable[..., object], g: Callable[..., object]) -> AnyTuple:
    """Applies `f` to the modes of tuples one after the other, and `g` to the results."""
    return g(*[f(*parts) for parts in zip(*[as_tuple(tuples(term)) for term in terms], strict=True)])


def unwrap(x: object) -> AnyTuple:
    """A tuple without the one-mode tuples around it."""
    inner = tuples(x)
    modes = as_tuple(inner)
    return unwrap(modes[0]) if len(modes) == 1 and modes[0] is not inner else inner


class _Bases(type):
    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, Basis)

    def __call__(cls, value: Any, mode: int | Sequence[int]) -> Basis:
        return Basis(value, (mode,) if isinstance(mode, int) else tuple(mode))


class ScaledBasis(metaclass=_Bases):
    """The class of multiples of unit vectors: `ScaledBasis(2, 0)` is `2 * E(0)`, a stride of coordinates. They have
    `value` and `mode`, a list of positions.
    """


def E(mode: int | Sequence[int]) -> Basis:
    """The unit vector of a mode of coordinates, by its position or positions: a stride of `make_identity_layout`."""
    return ScaledBasis(1, mode)


def flatten_to_tuple(a: object) -> tuple[AnyTuple, ...]:
    """The leaves of a tuple; for an integer, a tuple with only that integer."""
    return as_tuple(flatten(tuples(a)))


def tuple_cat(*terms: object) -> tuple[AnyTuple, ...]:
    """The modes of tuples and integers, one after the other."""
    return tuple(chain.from_iterable(as_tuple(tuples(term)) for term in terms))


def front(input: object) -> AnyTuple:
    """The first leaf of a tuple."""
    return flatten_to_tuple(input)[0]


def find_if(t: Any, pred_fn: Callable[[Any, int], Any], hierarchical: bool = True) -> Any:
    """The position of the first leaf with a true `pred_fn(leaf, position in its tuple)`: a number, or a tuple of
    numbers within a nested tuple; None without such a leaf. Unless `hierarchical`, tuples within are leaves.
    """
    for position, part in enumerate(as_tuple(tuples(t))):
        if isinstance(part, tuple) and hierarchical:
            inner = find_if(part, pred_fn)
            if inner is not None:
                return (position, *as_tuple(inner))
        elif pred_fn(part, position):
            return position
    return None


def find(t: object, x: object, hierarchical: bool = True) -> Any:
    """The position of the first leaf that Python knows to equal `x`, in the form of `find_if`."""
    return find_if(t, lambda leaf, _: not isinstance(leaf, Value) and leaf == x, hierarchical)


def wrap(x: object) -> tuple[Any, ...]:
    """A tuple as it is, anything else as a tuple with one element."""
    return as_tuple(x)


def filter_tuple(*args: object, f: Callable[..., tuple[object, ...]]) -> tuple[AnyTuple, ...]:
    """Applies a function that returns tuples to the elements of tuples, taken together, and joins the results."""
    return tuple(chain.from_iterable(f(*parts) for parts in zip(*(as_tuple(tuples(arg)) for arg in args), strict=True)))


def basis_value(e: object) -> AnyTuple:
    """The factor of a `ScaledBasis`; anything else as it is."""
    return e.value if isinstance(e, Basis) else e


def basis_get(basis: object, t: object) -> AnyTuple:
    """The part of a tuple or a layout at the mode of a `ScaledBasis`; of anything else the whole."""
    return get(t, basis.path) if isinstance(basis, Basis) else t


def has_underscore(a: object) -> bool:
    """Whether a leaf of a coordinate is None, which keeps a mode."""
    return None in flatten_to_tuple(a)


def is_major(mode: int, stride: object) -> bool:
    """Whether a mode of a stride is contiguous, so that its first leaf is 1."""
    return _is_one(front(as_tuple(tuples(stride))[mode]))


def leading_dim(shape: object, stride: object) -> AnyTuple:
    """The position of the first mode with a stride of 1 and an extent other than 1, in the form of `find_if`; None
    without such a mode.
    """
    extents = iter(flatten_to_tuple(shape))
    return find_if(stride, lambda step, _: not _is_one(next(extents)) and _is_one(step))


def _is_one(x: object) -> bool:
    return not isinstance(x, Value) and x == 1


def append_ones(t: object, up_to_rank: int | None = None) -> AnyTuple:
    """Appends modes 1:0 to a layout or a tensor, one or up to a rank."""
    return append(t, up_to_rank=up_to_rank)


def prepend_ones(t: object, up_to_rank: int | None = None) -> AnyTuple:
    """Prepends modes 1:0 to a layout or a tensor, one or up to a rank."""
    return prepend(t, up_to_rank=up_to_rank)


def get_nonswizzle_portion(layout: AnyLayout) -> Layout:
    """The layout without its swizzle; also for a tensor."""
    return plain_layout(layout.ir_type.layout.data if isinstance(layout, AnyTensor) else layout)


def get_swizzle_portion(layout: object) -> Any:
    """The swizzle of a layout or a tensor; None if it is plain."""
    layout = layout.ir_type.layout.data if isinstance(layout, AnyTensor) else layout
    return layout.inner if isinstance(layout, ComposedLayout) else None
