# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What docs/python.md says of names that mean something else in NumPy."""

import numpy as np

from tilefold import cute


def test_where_numpy_differs() -> None:
    @cute.kernel
    def differs(A: cute.Tensor, out: cute.Tensor, whole: cute.Tensor):
        x = A.load()
        assert len(A) == len(x) == len(A.layout) == 2
        assert (cute.size(A, 0), cute.size(x, 0), cute.size(x)) == (2, 2, 6)
        assert (cute.size((2, 3)), cute.flatten(((2, 3), 4)), cute.take((2, 3, 4), 0, 2)) == (6, (2, 3, 4), (2, 3))
        assert (x.reshape((3, 2)).shape, x[1, None].shape) == ((3, 2), (3,))
        out[0] = A[4]
        out[1] = x[4]
        out[2] = x.reshape((3, 2))[1, 1]
        out[3] = x.reshape((3, 2))[0, 1]
        out[4] = cute.math.max(cute.Float32(float("nan")), 1.0)
        out[5] = cute.full((2,), float("nan"), cute.Float32).reduce(cute.ReductionOp.MAX, 3.0)
        assert (cute.Int32(3) / cute.Int32(2)).dtype == cute.Float32
        assert (cute.Int32(3) + cute.Float16(2)).dtype == cute.Float16
        assert (cute.Uint8(3) + cute.Int8(2)).dtype == cute.Int32
        whole.store(x * -1.75)
        whole[0, 0] = x[1, 2] * 60.5

    a, out, whole = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros(6, np.float32), np.zeros((2, 3), np.int32)
    differs(a, out, whole).launch(grid=1, block=1, device="sim")
    first_fastest = a.reshape(3, 2, order="F")
    assert out.tolist() == [a[0, 2], a[0, 2], first_fastest[1, 1], first_fastest[0, 1], 1, 3]
    wanted = (a * -1.75).astype(np.int32)
    wanted[0, 0] = 302
    assert (whole == wanted).all()


def test_floats_are_divided_down_as_python_does() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((2, 256)) * [[100.0], [3.0]]).astype(np.float32)
    quotients, remainders = np.zeros_like(a), np.zeros_like(a)

    @cute.kernel
    def divide(a: cute.Tensor, b: cute.Tensor, quotients: cute.Tensor, remainders: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        quotients[t], remainders[t] = a[t] // b[t], a[t] % b[t]

    divide(a, b, quotients, remainders).launch(grid=1, block=256, device="sim")
    assert quotients.tolist() == np.floor_divide(a, b).tolist()
    assert (np.abs(remainders - np.mod(a, b)) <= np.spacing(np.abs(a))).all()
    assert ((remainders == 0) | (np.sign(remainders) == np.sign(b))).all()
