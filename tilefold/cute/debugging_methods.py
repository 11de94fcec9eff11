# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The methods by which a call of a kernel is debugged."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from inspect import signature
from os import PathLike
from typing import TYPE_CHECKING, Any, ParamSpec, SupportsIndex, TypeVar, Unpack

from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.tracing.python_errors import wrong_arguments
from tilefold.runtime.options import CheckKeywords, SimKeywords, SimOptions, launch_attributes

from .torch_compile import untraced

if TYPE_CHECKING:
    from pathlib import Path

    from tilefold.driver.faults import Report
    from tilefold.driver.line_costs import Costs
    from tilefold.tools.bisection.verdict import Verdict
    from tilefold.tools.report.page import Page

    from .compiled_kernel import CompiledKernel
    from .debugging import RepeatableLaunch
    from .specialise import BoundArguments

P = ParamSpec("P")
R = TypeVar("R")
Size = SupportsIndex | Sequence[SupportsIndex]
"""A size of a grid or a block: x, or up to three of x, y, z."""


def shown(error: TilefoldError) -> TilefoldError:
    """An error without the calls within tilefold: the message states the fault, and the traceback the call of the
    user's it is about. In Python's development mode (`python -X dev`) it stays as it is.
    """
    if not sys.flags.dev_mode:
        error.__traceback__ = error.__cause__ = error.__context__ = None
    return error


def showing(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose errors are `shown`."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TilefoldError as error:
            raise shown(error) from error.__cause__
        except TypeError as error:
            try:
                signature(function).bind(*args, **kwargs)
            except TypeError:
                raise shown(wrong_arguments(error, kwargs, function)) from None
            raise

    return call


class NamesMethodsOfCalls:
    """The base of a kernel without arguments, which names a method of calls where one is looked for in it."""

    function: Callable[..., object]

    if not TYPE_CHECKING:  # so that type checkers still find wrong names

        def __getattr__(self, name: str) -> object:
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name.startswith("_") or not (name in ("launch", "build") or hasattr(DebuggableCall, name)):
                raise AttributeError(text, name=name, obj=self)
            text += f": a call of the kernel has it; write {self.function.__name__}(...).{name}(...)"
            raise AttributeError(text, name=name, obj=None)  # Python adds no near name of the kernel's own


class DebuggableCall(ABC):
    """The base of a kernel with its arguments, in the order of its parameters."""

    __slots__ = ()
    kernel: Any
    args: tuple[object, ...]

    @property
    @abstractmethod
    def bound(self) -> "BoundArguments":
        """The arguments in the form that building the kernel takes. Raises LaunchError (E3106)."""

    @property
    def arguments(self) -> "Mapping[str, Any]":
        """The arguments by their names. LaunchError (E3106) for parameters without names of their own."""
        names: Sequence[str] = self.kernel.signature.names
        if names and not self.args:
            message = "further inputs are for kernels whose parameters have names of their own"
            raise TilefoldError(Code.RUN_ARGUMENT, message, "leave out *args and **kwargs, or inputs= and fuzz=")
        return dict(zip(names, self.args, strict=True))

    @abstractmethod
    def build(self, block: Size) -> "CompiledKernel":
        """The kernel for these arguments and a block of this size. Raises ProgramError."""

    @untraced
    @showing
    def bisect(
        self,
        grid: Size,
        block: Size,
        *,
        device: str = "sim",
        cluster: Size | None = None,
        stores: bool = False,
        **options: Unpack[SimKeywords],
    ) -> "Verdict":
        """Finds the pass that changes the results of a launch. It simulates the launch as traced and after each pass,
        on copies of the arguments, and compares results, faults, printed text and, with `stores`, every value written
        to global memory; then it compares the PTX, and with `device="cuda"` the results of the GPU. The other options
        are those of `launch`.

        The result prints as a report; `passed` is whether the kernel has no fault and no pass changes it.
        """
        launch = self._repeatable_launch(grid, block, cluster, SimOptions.of(options))
        return launch.bisect(stores=stores, gpu=device == "cuda")

    @untraced
    @showing
    def check(
        self,
        grid: "Size | Callable[[Mapping[str, Any]], Size]",
        block: Size,
        *,
        outputs: Collection[str] | None = None,
        stages: Sequence[str] = ("cute", "instr"),
        cluster: Size | None = None,
        inputs: "Sequence[Mapping[str, Any]]" = (),
        fuzz: int = 0,
        ranges: "Mapping[str, range] | None" = None,
        **options: Unpack[CheckKeywords],
    ) -> "Report":
        """Finds all faults of a launch on the simulator, at the given stages, on copies of the arguments: races,
        out-of-bounds accesses, uses of unwritten values, barriers that some threads never reach. The arguments named in
        `outputs` count as unwritten before the launch, which must write each of their elements; the default is all
        arguments that the kernel writes and never reads, unless data decide which elements it writes. With
        `outputs="partial"` the launch may leave elements of these unwritten. `resident` blocks run at the same time;
        `numbers` also looks for NaN, infinities, and other wrong numbers.

        `inputs` are further arguments by their names, each beside those of the call. `fuzz` more are drawn at random,
        by `seed` (docs/debugging.md#more-inputs); `ranges` are those of integers. With these, `grid` may be a function
        of the arguments by their names.

        The result prints as a report; others come from its methods `json` and `sarif`. Its `verdict` is "faults",
        "clean", or "incomplete": then no fault was found, and `gaps` lists everything the check did not see. `passed`
        is whether no fault was found. Raises ProgramError for a kernel that cannot be built, LaunchError for arguments
        that do not fit.
        """
        from tilefold.driver.faults import AS_GIVEN

        from .repeated_checks import check_all, further_inputs

        chosen = SimOptions.of(options, CheckKeywords)
        calls = [(AS_GIVEN, self), *further_inputs(self, inputs, fuzz, ranges or {}, chosen.seed)]
        launches = [
            (name, call._repeatable_launch(grid(call.arguments) if callable(grid) else grid, block, cluster, chosen))
            for name, call in calls
        ]
        return check_all(launches, outputs, stages)

    @untraced
    @showing
    def costs(
        self,
        grid: Size,
        block: Size,
        *,
        cluster: Size | None = None,
        **options: Unpack[SimKeywords],
    ) -> "Costs":
        """The costs of the kernel's lines in a launch on the simulator, on copies of the arguments: bank conflicts and
        layouts without them, sectors of global memory, superfluous barriers.

        The result is a table when it is printed; `lines` has its rows (docs/profiling.md). Raises the errors of
        `launch`.
        """
        launch = self._repeatable_launch(grid, block, cluster, SimOptions.of(options))
        return launch.costs()

    @untraced
    @showing
    def repro(
        self,
        folder: "str | PathLike[str]",
        grid: Size,
        block: Size,
        *,
        command: str = "check",
        outputs: Collection[str] = (),
        cluster: Size | None = None,
        seed: int = 0,
    ) -> "Path":
        """Writes a folder that repeats a launch on another machine: the kernel and its launch as text, the arguments as
        arrays, and a script that executes a command of tilefold on them: `run`, `check`, `bisect` or `reduce`. The
        arguments named in `outputs` count as unwritten. Returns the script.

        Raises TilefoldError (E4002) where the folder cannot be written.
        """
        from pathlib import Path

        launch = self._repeatable_launch(grid, block, cluster, SimOptions(seed=seed))
        launch.reproduction(command, outputs).write(Path(folder))
        return Path(folder) / "repro.py"

    @untraced
    @showing
    def reduce(
        self,
        folder: "str | PathLike[str]",
        grid: Size,
        block: Size,
        *,
        seconds: float = 60,
        outputs: Collection[str] = (),
        cluster: Size | None = None,
        seed: int = 0,
    ) -> str:
        """Writes a folder like `repro`, and shrinks the kernel in it as long as it fails in the same way: a pass
        crashes or changes it, or it has a fault. Returns the text of the small kernel.

        Raises TilefoldError (E4003) for a launch that does not fail, (E4002) if the folder cannot be written.
        """
        from pathlib import Path

        from .reproducing import reduce_folder

        options = SimOptions(seed=seed)
        launch = self._repeatable_launch(grid, block, cluster, options)
        return reduce_folder(Path(folder), launch.reproduction("bisect", outputs), options, seconds)

    @untraced
    @showing
    def report_html(
        self,
        grid: Size,
        block: Size,
        *,
        cluster: Size | None = None,
        **options: Unpack[CheckKeywords],
    ) -> "Page":
        """Everything about the kernel and a launch as one HTML page, which a notebook displays: source, code at every
        stage, passes, remarks, resources, and, from the simulator on copies of the arguments, faults and costs.

        The result is the text of the page (docs/profiling.md). Raises the errors of `check`.
        """
        launch = self._repeatable_launch(grid, block, cluster, SimOptions.of(options, CheckKeywords))
        return launch.report_html()

    def _repeatable_launch(
        self, grid: Size, block: Size, cluster: Size | None, options: SimOptions
    ) -> "RepeatableLaunch":
        from .debugging import RepeatableLaunch

        attributes = launch_attributes(cluster) if cluster is not None else ()
        return RepeatableLaunch(self, grid, block, attributes, options)
