# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention for few rows of Q on Hopper, as in decoding: blocks of a cluster share the keys.

The kernel is in tilefold/kernels/sm90/attention_decode.py.

    python examples/python/attention_decode.py
    python examples/python/attention_decode.py --device cuda --batch 8 --keys 8192 --heads 32 --shared 4 --depth 128
"""

import numpy as np
from attention import reference
from common import check, chosen, normal, parser, place

from tilefold.kernels.sm90.attention_decode import decode_attention


def main(arguments: list[str] | None = None) -> None:
    sizes = {"batch": 1, "rows": 1, "keys": 256, "heads": 4, "shared": 4, "depth": 64}
    made = parser("attention for few rows of Q, on Hopper", **sizes, causal=0, blocks=2)
    options = made.parse_args(arguments)
    device = chosen(options.device)
    shape = (options.batch, options.rows, options.heads, options.depth)
    shape_k = (options.batch, options.keys, options.heads // options.shared, options.depth)
    hQ, hK, hV = normal(0, shape), normal(1, shape_k), normal(2, shape_k)
    Q, K, V, Out = place(device, hQ, hK, hV, np.empty_like(hQ))
    decode_attention(Q, K, V, Out, None, device, options.blocks, causal=bool(options.causal))
    check("O", Out, reference(hQ, hK, hV, bool(options.causal)))


if __name__ == "__main__":
    main()
