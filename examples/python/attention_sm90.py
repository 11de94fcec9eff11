# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention on Hopper: one warpgroup loads by TMA copies, the others multiply and exponentiate in turns.

The kernel is in tilefold/kernels/sm90/attention.py; docs/attention.md describes it.

    python examples/python/attention_sm90.py
    python examples/python/attention_sm90.py --device cuda --rows 4096 --length 4096 --heads 32 --depth 128 --blocks 132
"""

import numpy as np
from attention import reference
from common import check, chosen, normal, parser, place

from tilefold.kernels.sm90.attention import attention
from tilefold.kernels.sm90.attention_tiles import chosen_config


def main(arguments: list[str] | None = None) -> None:
    sizes = {"batch": 1, "rows": 256, "length": 256, "heads": 2, "shared": 1, "depth": 64}
    made = parser("attention on Hopper", **sizes, causal=0, blocks=2)
    options = made.parse_args(arguments)
    device = chosen(options.device)
    shape = (options.batch, options.rows, options.heads, options.depth)
    shape_k = (options.batch, options.length, options.heads // options.shared, options.depth)
    hQ, hK, hV = normal(0, shape), normal(1, shape_k), normal(2, shape_k)
    Q, K, V, Out = place(device, hQ, hK, hV, np.empty_like(hQ))
    config = chosen_config(options.depth, bool(options.causal))
    attention(Q, K, V, Out, config, device, options.blocks)
    check("O", Out, reference(hQ, hK, hV, config.causal))


if __name__ == "__main__":
    main()
