# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Records that installed packages add to tilefold's tables, by entry points.

Each entry point is a function without arguments that returns records. Nothing is looked up before a name is missing in
a table, so packages neither cost anything nor change the meaning of a known name.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar, cast

from .errors import Code, TilefoldError

_RecordT = TypeVar("_RecordT")


def installed_records(group: str, *kinds: type[_RecordT]) -> Iterator[tuple[str, _RecordT]]:
    """The records of the entry points of a group, each with words for where it is from.

    Raises `TilefoldError` (E0320), which names the package, if they cannot be loaded or are not of these `kinds`.
    """
    from importlib.metadata import entry_points  # it takes longer to import than most commands

    for point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value)):
        what = group.removeprefix("tilefold.")
        where = f"the {what} {point.name!r} of {point.dist.name if point.dist else point.value}"
        for record in _load(point.load, where):
            if not isinstance(record, kinds):
                names = " or ".join(f"{'an' if kind.__name__[0] in 'AEIOM' else 'a'} {kind.__name__}" for kind in kinds)
                raise TilefoldError(Code.ATOM_PACKAGE, f"{where}: {type(record).__name__} is not {names}")
            yield where, record


def _load(load: Callable[[], object], where: str) -> Iterable[object]:
    try:
        return list(cast("Callable[[], Iterable[object]]", load())())
    except TilefoldError as error:
        raise TilefoldError(Code.ATOM_PACKAGE, f"{where}: {error.message}", error.hint) from error
    except Exception as error:  # whatever a package does when it is imported
        text = f"{where} cannot be loaded: {type(error).__name__}: {error}"
        raise TilefoldError(Code.ATOM_PACKAGE, text, "update the package or uninstall it") from error
