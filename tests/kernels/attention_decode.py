# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Problems for tilefold/kernels/sm90/attention_decode.py, compared with NumPy."""

import importlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from ml_dtypes import bfloat16


def example(name: str = "attention_decode") -> Any:
    """A module of the library's kernels for Hopper."""
    return importlib.import_module(f"tilefold.kernels.sm90.{name}")


@dataclass(frozen=True)
class Problem:
    """A batch: rows of Q and keys, heads of Q to each one of K; the keys that sequences have, and those of a page, if
    K and V are on pages. What lies after the last key is NaN.
    """

    rows: int = 1
    keys: int = 100
    heads_k: int = 1
    shared: int = 1
    batch: int = 1
    depth: int = 64
    causal: bool = False
    dtype: Any = np.float16
    lengths: tuple[int, ...] | None = None
    page: int = 0

    def arrays(self) -> tuple[list[np.ndarray], dict[str, Any]]:
        """Q, K and V, one sequence after the other, and the options for them."""
        random = np.random.default_rng(self.keys)
        shape = self.batch, self.rows, self.heads_k * self.shared, self.depth
        shape_k = self.batch, self.keys, self.heads_k, self.depth
        given = [random.standard_normal(each, np.float32).astype(self.dtype) for each in (shape, shape_k, shape_k)]
        options: dict[str, Any] = {"causal": self.causal}
        if self.lengths is not None:
            options["lengths"] = np.array(self.lengths, np.int32)
            for b, length in enumerate(self.lengths):
                given[1][b, length:], given[2][b, length:] = np.nan, np.nan
        return given, options

    def on_pages(self, tensor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """K or V on pages, which are in no order, and the table of these."""
        count = self.batch * self.keys // self.page
        table = np.random.default_rng(count).permutation(count).astype(np.int32)
        pages = np.empty((count, self.page, *tensor.shape[2:]), tensor.dtype)
        pages[table] = tensor.reshape(pages.shape)
        return pages, table.reshape(self.batch, -1)

    def expected(self, Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> np.ndarray:
        """O in f64."""
        result = np.zeros(Q.shape)
        for b, length in enumerate(self.lengths or (self.keys,) * self.batch):
            k, v = (np.repeat(x[b, :length].astype(np.float64), self.shared, 1) for x in (K, V))
            scores = np.einsum("rhd,khd->hrk", Q[b].astype(np.float64), k) / math.sqrt(self.depth)
            if self.causal:
                scores[:, ~np.tri(self.rows, length, length - self.rows, dtype=bool)] = -np.inf
            power = np.exp(scores - scores.max(-1, keepdims=True, initial=-1e30))
            total = power.sum(-1, keepdims=True)
            result[b] = np.einsum("hrk,khd->rhd", power / np.where(total > 0, total, 1), v)
        return result

    def check(self, config: Any = None, device: str = "sim", **more: Any) -> np.ndarray:
        """Compares O, which begins as NaN, and returns it."""
        given, options = self.arrays()
        expected = self.expected(*given)
        if self.page:
            for i in (1, 2):
                given[i], options["table"] = self.on_pages(given[i])
        out = np.full_like(given[0], np.nan)
        example().decode_attention(*given, out, config, device, **options, **more)
        error = 1e-2 if self.dtype is bfloat16 else 2e-3
        np.testing.assert_allclose(out.astype(np.float64), expected, rtol=error, atol=error)
        return out
