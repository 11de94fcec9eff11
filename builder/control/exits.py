# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The end of a thread before the end of the kernel."""

from ...base.errors import Code, TilefoldError


def exit() -> None:
    """Ends the thread (PTX ISA, exit): a barrier of the block counts it as having arrived from then on.

    It is a statement of the kernel's own function. Raises TilefoldError (E5005) anywhere else.
    """
    raise TilefoldError(
        Code.BUILD_FORM,
        "'exit' ends a thread only in the kernel's own function",
        "return whether to end, and exit there",
    )
