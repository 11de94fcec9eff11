# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments and options of launches that no launch can have: each is refused at once, with a code."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from tilefold.base.errors import Code, TilefoldError
from tilefold.base.printable import shown
from tilefold.compiler.frontend.diagnostics import ProgramError

from tilefold import cute

HUGE = 10**5000
OTHERS = (Code.BUILD_VALUE, Code.BUILD_RUN_TIME, Code.PROFILE_MISMATCH)
"""The codes for numbers of a value's type, for uses that a dynamic or a two-dimensional tensor does not have."""


@cute.kernel
def increment(A: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    A[t] = A[t] + 1.0


@cute.kernel
def add(A: cute.Tensor, n: cute.Int32):
    t = cute.arch.thread_idx()[0]
    A[t] = A[t] + n


@cute.kernel
def of_anything(A: Any, B: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    B[t] = B[t] + 1.0


def _array() -> Any:
    return np.zeros(32, np.float32)


def _launch(array: Any, **options: Any) -> None:
    increment(array).launch(**{"grid": 1, "block": 32, "device": "sim"} | options)


class Described:
    """An object with an `__array_interface__`, some of whose fields are wrong."""

    def __init__(self, **fields: object) -> None:
        self.array = _array()
        self.__array_interface__ = dict(self.array.__array_interface__) | fields


WRONG_FIELDS: list[dict[str, object]] = [
    {"shape": (-32,)}, {"shape": (2**70,)}, {"shape": (2**62,)}, {"shape": (HUGE,)}, {"shape": (1.5,)}, {"shape": "ab"},
    {"shape": None}, {"shape": (0,)}, {"strides": (-4,)}, {"strides": (2**70,)}, {"strides": (4, 4)}, {"strides": "x"},
    {"strides": (4.5,)}, {"data": None}, {"data": (-8, False)}, {"data": (2**70, False)}, {"data": ("x", False)},
    {"data": (0, False)}, {"typestr": "<f400"}, {"typestr": 5}, {"typestr": ""}, {"typestr": "|V3"},
]  # fmt: skip


@pytest.mark.parametrize("fields", WRONG_FIELDS, ids=lambda fields: shown(fields)[:40])
def test_array_interface(fields: dict[str, object]) -> None:
    with pytest.raises(TilefoldError) as caught:
        _launch(Described(**fields))
    assert caught.value.code == "E3106"
    assert "argument 'A' " in str(caught.value)


@pytest.mark.parametrize(
    "shape",
    [2**70, (-4,), -1, 0, (0,), (2**47, 4), (HUGE,), 1.5, ("a",), "ab", (None,), None, ((4, 2), 8), (True,), ()],
    ids=shown,
)
def test_shape_of_a_spec(shape: Any) -> None:
    with pytest.raises(TilefoldError) as caught:
        cute.TensorSpec(shape, cute.Float32)
    assert caught.value.code == "E3106"


@pytest.mark.parametrize(
    "options",
    [
        {"stride": (-1,)},
        {"stride": (2**70,)},
        {"stride": (HUGE,)},
        {"stride": "x"},
        {"stride": (1, 1)},
        {"align": -HUGE},
        {"align": "x"},
        {"align": 3},
        {"align": 2**40},
        {"align": True},
    ],
    ids=shown,
)
def test_options_of_a_spec(options: Any) -> None:
    with pytest.raises(TilefoldError) as caught:
        cute.TensorSpec((4,), cute.Float32, **options)
    assert caught.value.code == "E3106"


def test_spec_takes_integers_of_numpy() -> None:
    assert cute.TensorSpec(cast(Any, np.array([4, 8])), cute.Float32).shape == (4, 8)
    assert cute.TensorSpec(cast(Any, np.int64(4)), cute.Float32, stride=cast(Any, [np.int32(2)])).stride == (2,)


@pytest.mark.parametrize("kernel", [of_anything, increment], ids=["no annotation", "a tensor"])
def test_memoryview(kernel: Any) -> None:
    arguments = [memoryview(_array()), _array()] if kernel is of_anything else [memoryview(_array())]
    with pytest.raises(TilefoldError, match="memoryview") as caught:
        kernel(*arguments).launch(grid=1, block=32, device="sim")
    assert caught.value.code == "E3106"
    with pytest.raises(TilefoldError, match="memoryview"):
        kernel(*arguments).build(block=32)


def test_hash_that_fails() -> None:
    class Unhashed:
        def __hash__(self) -> int:
            raise RuntimeError("no hash")

    with pytest.raises(TilefoldError, match="which has no hash"):
        of_anything(Unhashed(), _array()).launch(grid=1, block=32, device="sim")


OPTIONS = (
    "cooperative", "use_pdl", "smem", "seed", "races", "resident", "processes", "max_steps", "max_memory", "exact",
    "numbers", "cluster", "grid", "block", "launch_completion_event", "launch_completion_event_flags",
    "programmatic_event", "programmatic_event_flags", "programmatic_event_trigger_at_block_start",
    "smem_merge_branch_allocs", "preferred_smem_carveout", "hint_smem_base_uniform", "fallback_cluster",
)  # fmt: skip


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize(
    "value",
    ["x", 1.5, -HUGE, (), [None], memoryview(b"x")],
    ids=["text", "fraction", "digits", "tuple", "list", "memory"],
)
def test_option_of_a_launch(option: str, value: Any) -> None:
    if (option, value) in (("seed", -HUGE), ("use_pdl", ())):
        return  # every integer is a seed, and what is empty is false
    with pytest.raises(TilefoldError) as caught:
        _launch(_array(), **{option: value})
    assert caught.value.code == "E3105"
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("number", [HUGE, -HUGE, 2**70], ids=shown)
def test_number_of_many_digits(number: int) -> None:
    with pytest.raises(TilefoldError) as caught:
        add(_array(), number).launch(grid=1, block=32, device="sim")
    assert caught.value.code == "E3106"
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    "make",
    [
        lambda: cute.make_layout(HUGE),
        lambda: cute.make_layout((4, 4), stride=(1, HUGE)),
        lambda: cute.make_ordered_layout((HUGE, 2), (0, 1)),
    ],
)
def test_layout_of_many_digits(make: Callable[[], object]) -> None:
    with pytest.raises(TilefoldError) as caught:
        make()
    assert caught.value.code == "E0103"


USES_OF_MANY_DIGITS: list[Callable[[Any], object]] = [
    lambda t: t[HUGE],
    lambda t: t[-HUGE],
    lambda t: t[(HUGE,)],
    lambda t: t[HUGE, 0],
    lambda t: t[None, HUGE],
    lambda t: t[HUGE:],
    lambda t: t[:HUGE],
    lambda t: t[0:4:HUGE],
    lambda t: t[-HUGE:HUGE:-HUGE],
    lambda t: t.__setitem__(HUGE, 1.0),
    lambda t: t.ptr(HUGE),
    lambda t: t.load()[HUGE],
    lambda t: cute.local_tile(t, (4,), (HUGE,)),
    lambda t: cute.local_tile(t, (HUGE,), (0,)),
    lambda t: cute.domain_offset((HUGE,), t),
    lambda t: t[0] + HUGE,
    lambda t: cute.Int32(HUGE),
    lambda t: cute.range_constexpr(HUGE),
    lambda t: cute.make_rmem_tensor(4, cute.Float32)[HUGE],
    lambda t: cute.make_rmem_tensor(HUGE, cute.Float32),
]


@cute.kernel
def uses(A: cute.Tensor, use: cute.Constexpr):
    use(A)


@pytest.mark.parametrize("shape", [(32,), (4, 8)], ids=str)
@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize("use", range(len(USES_OF_MANY_DIGITS)))
def test_number_of_many_digits_in_a_kernel(use: int, is_dynamic: bool, shape: tuple[int, ...]) -> None:
    array: Any = np.zeros(shape, np.float32)
    argument = cute.from_dlpack(array).mark_layout_dynamic() if is_dynamic else array
    with pytest.raises(ProgramError) as caught:
        uses(argument, USES_OF_MANY_DIGITS[use]).launch(grid=1, block=32, device="sim")
    said = str(caught.value)
    assert caught.value.diagnostics[0].code in (Code.TEXT_INTEGER_RANGE, *OTHERS)
    assert "test_hostile_arguments.py:" in said
    assert "Exceeds the limit" not in said
    assert "set_int_max_str_digits" not in said
    assert len(said) < 1000


@cute.kernel
def endless(A: cute.Tensor):
    x = A[0]
    while True:
        x = x + 1.0


@cute.kernel
def endless_but_for_a_condition(A: cute.Tensor):
    while 1:
        A[0] = A[0] + 1.0
        if A is None:  # pyright: ignore[reportUnnecessaryComparison]
            break


@cute.kernel
def endless_iterator(A: cute.Tensor):
    import itertools

    for _ in itertools.count():
        A[0] = A[0] + 1.0


@pytest.mark.parametrize(
    ("kernel", "steps"), [(endless, 10), (endless_but_for_a_condition, 1 << 15), (endless_iterator, 1 << 15)]
)
def test_loop_of_python_without_an_end(kernel: Any, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilefold.builder.tracing.state import Builder

    count, insert = 0, Builder.insert

    def counted(self: Builder, op: Any) -> None:
        nonlocal count
        count += 1
        insert(self, op)

    monkeypatch.setattr(Builder, "insert", counted)
    with pytest.raises(TilefoldError, match="never end") as caught:
        kernel(_array()).launch(grid=1, block=32, device="sim")
    assert caught.value.code == "E5010"
    assert count <= steps


def test_loop_of_python_that_ends() -> None:
    @cute.kernel
    def loop(A: cute.Tensor):
        steps = 0
        while True:
            A[cute.arch.thread_idx()[0]] = steps
            steps += 1
            if steps == 3:
                break

    array = _array()
    loop(array).launch(grid=1, block=32, device="sim")
    assert array[0] == 2
