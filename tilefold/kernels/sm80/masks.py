# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which scores count: all, those of keys up to a row's own, or those of a window that ends there."""

from dataclasses import dataclass
from typing import Any

from tilefold import cute


@dataclass(frozen=True)
class Mask:
    """Where `causal`, row `i` of `rows` sees key `j` of `keys` only if j <= i + keys - rows, so that the last row sees
    all keys; with a `window`, only the last `window` of them.
    """

    causal: bool = False
    window: int = 0

    def sees(self, row: Any, key: Any, rows: Any, keys: Any) -> Any:
        """Whether a score counts, of a row and a key that may be beyond the last ones."""
        seen = (row < rows) & (key < keys)
        if self.causal:
            seen = seen & (key <= row + keys - rows)
        if self.window:
            seen = seen & (key > row + keys - rows - self.window)
        return seen

    def others(self, first: Any, size: int, rows: Any, keys: Any, tile: int, tiles: Any, of_keys: bool) -> Any:
        """The tiles with scores that count, of `tiles` tiles: of the rows that see some of the keys from `first` on, or
        of the keys that some of the rows from `first` on see. The first one, and that after the last.
        """
        low: Any = 0
        high: Any = tiles
        past = keys - rows
        if of_keys:
            if self.causal:
                low = cute.math.max(first - past, 0) // tile
            if self.window:
                last = cute.math.max(first + size - 1 - past + self.window - 1, -1)
                high = cute.math.min(high, (last + tile) // tile)
        else:
            if self.causal:
                high = cute.math.min(high, cute.ceil_div(cute.math.max(first + size + past, 0), tile))
            if self.window:
                low = cute.math.max(first + past - self.window + 1, 0) // tile
        return low, high
