# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The progress of long work, as a bar on the terminal."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress


@contextmanager
def progress(title: str, total: int) -> Generator[Callable[[], object], None, None]:
    """Within it, a bar on the terminal, if there is one; each call of its value is one step of `total`."""
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda: progress.advance(task)
