# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions and classes of torch and of CUDA that are replaced for a while: most of them on a machine without a GPU.

tilefold's own launches ask a `Device`, and the simulator is one. A program's calls of `torch.cuda` and of cuda-python
ask no device of tilefold, so a program runs unchanged only if they are replaced. `Replacements` is the one place that
does so.
"""

from contextlib import ExitStack

_ABSENT = object()


class Replacements(ExitStack):
    """The replaced names. Closing it, as the end of `with` does, restores them, the last one first."""

    def set(self, owner: object, **values: object) -> None:
        """Gives names of a module, a class or an object other values."""
        names = owner.__dict__
        for name, value in values.items():
            own, shown = names.get(name, _ABSENT), getattr(owner, name, _ABSENT)
            setattr(owner, name, value)
            if own is not _ABSENT:
                self.callback(setattr, owner, name, own)
            elif name in names:
                self.callback(delattr, owner, name)
            else:  # a property keeps it elsewhere
                self.callback(setattr, owner, name, shown)
