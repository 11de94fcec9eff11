# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How layouts and what is made of them show themselves in a notebook (IPython's rich display).

The drawings are imported when something is drawn, so that the algebra alone stays quick to import. What is made of one
of these, such as a tiled copy of a kernel, shows itself as it does.
"""

from typing import Any


class Displayed:
    """The base of classes that a notebook shows as pictures: layouts, copies, multiplications, and their atoms."""

    __slots__ = ()

    @property
    def _displayed(self) -> Any:
        """What is shown, as the algebra has it."""
        return self

    def _repr_html_(self) -> str:
        """The notation and, where it can be drawn, the picture."""
        from .pictures import notebook_html

        return notebook_html(self._displayed)

    def _repr_svg_(self) -> str | None:
        """The picture; None where there is none, and the notebook shows the text."""
        from .pictures import notebook_svg

        return notebook_svg(self._displayed)
