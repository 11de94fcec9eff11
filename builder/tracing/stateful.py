# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Objects of this package that change while a kernel is built."""


class Stateful:
    """The base of classes of this package whose attributes change, and are carried as those of a user's object."""

    __slots__ = ()
