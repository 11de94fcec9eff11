# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that the simulator executes in place of inline PTX, which the text of a kernel cannot have."""

import warnings

from tilefold.builder.trace import Traced
from tilefold.dialects.ptx import InlineOp


def warn_of_functions(traced: Traced) -> None:
    """A RuntimeWarning at each line of inline PTX that the simulator executes by a function of Python alone: it refuses
    this line in the text of the kernel.
    """
    if not traced.texts:
        return
    from tilefold.runtime.sim.faults import site_of
    from tilefold.runtime.sim.rules.ptx_inline import meaning_of

    for op in traced.module.walk():
        if not isinstance(op, InlineOp) or op.text.data not in traced.texts:
            continue
        site = site_of(op)
        if meaning_of(op.text.data, len(op.args), op.res, site) is None:
            message = (
                "the text of a kernel lacks functions of Python, as sim=: the file runs on a GPU, but the simulator "
                "refuses this inline PTX (E3201)"
            )
            warnings.warn_explicit(message, RuntimeWarning, site.file or "<kernel>", site.line or 1)
