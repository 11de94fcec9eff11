# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""O = softmax(Q K^T * scale) V for each head on Blackwell (sm_100a), in f16 or bf16, by the library's kernel. No GPU of
this kind has run it.

The kernel is in tilefold/kernels/sm100/attention.py; docs/blackwell.md leads to it.

    python examples/python/attention_sm100.py
    python examples/python/attention_sm100.py --rows 512 --length 512 --depth 128 --heads 1
"""

import numpy as np
from attention import reference
from common import check, chosen, normal, parser, place

from tilefold.kernels.sm100.attention import KEYS, ROWS, Config, attention


def main(arguments: list[str] | None = None) -> None:
    sizes = {"batch": 1, "rows": 256, "length": 256, "heads": 2, "shared": 1, "depth": 64}
    options = parser("attention on Blackwell", **sizes, polynomial=4, slack=8).parse_args(arguments)
    if options.rows % (2 * ROWS) or options.length % KEYS or options.depth not in (64, 128):
        raise SystemExit("rows are a multiple of 256, keys of 128, and the depth is 64 or 128")
    device = chosen(options.device)
    shape = (options.batch, options.rows, options.heads, options.depth)
    shape_k = (options.batch, options.length, options.heads // options.shared, options.depth)
    hQ, hK, hV = normal(0, shape), normal(1, shape_k), normal(2, shape_k)
    Q, K, V, Out = place(device, hQ, hK, hV, np.empty_like(hQ))
    attention(Q, K, V, Out, Config(polynomial=options.polynomial, slack=options.slack), device)
    check("O", Out, reference(hQ, hK, hV, False))


if __name__ == "__main__":
    main()
