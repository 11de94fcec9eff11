# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Problems for tilefold/kernels/sm90/attention.py, compared with NumPy."""

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from tests.kernels.attention_reference import reference


def example() -> Any:
    """A module of the library's kernels for Hopper."""
    return importlib.import_module("tilefold.kernels.sm90.attention")


@dataclass(frozen=True)
class Problem:
    """Rows, keys (as many as rows, if 0) and heads of a batch; how many heads share keys; sequences by their lengths,
    of rows and of keys, packed into a batch of one.
    """

    rows: int = 72
    keys: int = 0
    heads: int = 1
    batch: int = 1
    depth: int = 64
    shared: int = 1
    causal: bool = False
    dtype: Any = np.float16
    lengths: tuple[tuple[int, ...], tuple[int, ...]] | None = None

    def check(self, config: dict[str, Any], blocks: int = 2, launches: int = 1, **options: Any) -> np.ndarray:
        """O of launches that share a counter, which begins as NaN, against NumPy's; what the last one wrote."""
        module, random = example(), np.random.default_rng(self.rows)
        rows, keys = self.rows, self.keys or self.rows
        starts: Any = (None, None)
        if self.lengths is not None:
            starts = [np.concatenate([[0], np.cumsum(each)]).astype(np.int32) for each in self.lengths]
            rows, keys = (int(each[-1]) for each in starts)
        shapes = [(self.batch, rows, self.heads, self.depth)]
        shapes += [(self.batch, keys, self.heads // self.shared, self.depth)] * 2
        Q, K, V = (random.standard_normal(shape, np.float32).astype(self.dtype) for shape in shapes)
        out, counter = np.empty(shapes[0], self.dtype), np.zeros(1, np.int32)
        made = module.Config(causal=self.causal, **config)
        for _ in range(launches):
            out[...] = np.nan
            module.attention(
                Q, K, V, out, made, blocks=blocks, counter=counter, starts=starts[0], starts_k=starts[1], **options
            )
            assert counter[0] == 0
            self._compare(out, (Q, K, V), starts)
        return out

    def _compare(self, out: np.ndarray, given: tuple[np.ndarray, ...], starts: Any) -> None:
        parts: list[Any] = [(slice(None), slice(None))]
        if self.lengths is not None:
            parts = [(slice(*starts[0][i : i + 2]), slice(*starts[1][i : i + 2])) for i in range(len(self.lengths[0]))]
        Q, K, V = given
        error = 1e-2 if self.dtype is bfloat16 else 2e-3
        for rows, keys in parts:
            expected = reference(Q[:, rows], K[:, keys], V[:, keys], self.causal)
            np.testing.assert_allclose(out[:, rows].astype(np.float32), expected, rtol=error, atol=error)
