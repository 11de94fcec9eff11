# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention and its gradients in f64, by NumPy."""

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def weights(Q: Array, K: Array, causal: bool) -> tuple[Array, Array, Array]:
    """Heads of Q and K in f64, (batch, heads, rows, D), those of K as many as of Q, and the softmax of their scores.

    Where causal, the last row sees all keys; a row that sees none has zeros.
    """
    shared = Q.shape[2] // K.shape[2]
    q, k = (np.swapaxes(x.astype(np.float64), 1, 2) for x in (Q, np.repeat(K, shared, 2)))
    scores = q @ np.swapaxes(k, 2, 3) / math.sqrt(Q.shape[3])
    rows, keys = scores.shape[2:]
    if causal:
        scores[..., ~np.tri(rows, keys, keys - rows, dtype=bool)] = -np.inf
    power = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-1e30))
    sums = power.sum(axis=-1, keepdims=True)
    return q, k, power / np.where(sums > 0, sums, 1)


def reference(Q: Array, K: Array, V: Array, causal: bool) -> Array:
    """O for arrays of (batch, rows, heads, D). Heads of Q that follow each other may share one of K and V."""
    _, _, P = weights(Q, K, causal)
    v = np.swapaxes(np.repeat(V, Q.shape[2] // V.shape[2], 2).astype(np.float64), 1, 2)
    return np.swapaxes(P @ v, 1, 2)


def gradients(Q: Array, K: Array, V: Array, dO: Array, causal: bool) -> tuple[Array, Array, Array]:
    """The gradients of Q, K and V for one of O."""
    shared = Q.shape[2] // K.shape[2]
    q, k, P = weights(Q, K, causal)
    v, do = (np.swapaxes(x.astype(np.float64), 1, 2) for x in (np.repeat(V, shared, 2), dO))
    dP = do @ np.swapaxes(v, 2, 3)
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True)) / math.sqrt(Q.shape[3])
    dq, dk, dv = (np.swapaxes(x, 1, 2) for x in (dS @ k, np.swapaxes(dS, 2, 3) @ q, np.swapaxes(P, 2, 3) @ do))

    def summed(x: Array) -> Array:
        return x.reshape(*x.shape[:2], -1, shared, x.shape[3]).sum(axis=3)

    return dq, summed(dk), summed(dv)
