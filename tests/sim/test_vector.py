# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vectors, whose elements differ by lane or not."""

import numpy as np
import pytest

from tests.sim.harness import compute, entry, fault

A = np.array([5, -7, 9, 100], np.int32)
B = np.array([1, 2, 3, 0], np.int32)
INPUTS = {"a": ("i32", A), "b": ("i32", B)}
PAIR = """
%v0 = arith.constant dense<[10, 20, 30, 40]> : vector<4xi32>
%v1 = vector.insert %a, %v0 [1] : i32 into vector<4xi32>
"""


@pytest.mark.parametrize("uniform", [False, True])
class TestBothForms:
    def run(self, body: str, uniform: bool) -> list[int]:
        return compute(body, "i32", np.int32, INPUTS, uniform).tolist()

    def test_insert_and_extract(self, uniform: bool) -> None:
        for place, want in ((0, [10] * 4), (1, A.tolist()), (3, [40] * 4)):
            body = PAIR + f"%r = vector.extract %v1[{place}] : i32 from vector<4xi32>"
            assert self.run(body, uniform) == want

    def test_dynamic_positions(self, uniform: bool) -> None:
        index = PAIR + "%i = arith.index_cast %b : i32 to index\n"
        body = index + "%r = vector.extract %v0[%i] : i32 from vector<4xi32>"
        assert self.run(body, uniform) == [20, 30, 40, 10]
        body = index + "%w = vector.insert %a, %v0 [%i] : i32 into vector<4xi32>\n"
        body += "%r = vector.extract %w[2] : i32 from vector<4xi32>"
        assert self.run(body, uniform) == [30, -7, 30, 30]

    def test_broadcast_and_arithmetic(self, uniform: bool) -> None:
        body = PAIR + "%w = vector.broadcast %b : i32 to vector<4xi32>\n"
        body += "%s = arith.muli %v1, %w : vector<4xi32>\n%r = vector.extract %s[1] : i32 from vector<4xi32>"
        assert self.run(body, uniform) == (A * B).tolist()
        body = body.replace("%s[1]", "%s[0]")
        assert self.run(body, uniform) == (10 * B).tolist()

    def test_shuffle(self, uniform: bool) -> None:
        body = PAIR + "%s = vector.shuffle %v0, %v1 [7, 5, 0, 1] : vector<4xi32>, vector<4xi32>\n"
        body += "%r = vector.extract %s[1] : i32 from vector<4xi32>"
        assert self.run(body, uniform) == A.tolist()

    def test_reductions(self, uniform: bool) -> None:
        columns = [10, A, 30, 40]
        wants = {
            "add": sum(columns[1:], 10),
            "mul": 10 * A * 30 * 40,
            "minsi": np.minimum(A, 10),
            "maxsi": np.maximum(A, 40),
            "minui": np.where(A < 0, 10, np.minimum(A, 10)),
            "maxui": np.where(A < 0, A, np.maximum(A, 40)),
            "xor": 10 ^ A ^ 30 ^ 40,
        }
        for kind, want in wants.items():
            body = PAIR + f"%r = vector.reduction <{kind}>, %v1 : vector<4xi32> into i32"
            assert self.run(body, uniform) == np.asarray(want).tolist()
        body = PAIR + "%r = vector.reduction <add>, %v1, %b : vector<4xi32> into i32"
        assert self.run(body, uniform) == (80 + A + B).tolist()

    def test_bitcast(self, uniform: bool) -> None:
        body = PAIR + "%w = vector.bitcast %v1 : vector<4xi32> to vector<8xi16>\n"
        body += "%x = vector.bitcast %w : vector<8xi16> to vector<2xi64>\n"
        body += "%y = vector.extract %x[0] : i64 from vector<2xi64>\n"
        body += "%c = arith.constant 32 : i64\n%z = arith.shrsi %y, %c : i64\n%r = arith.trunci %z : i64 to i32"
        assert self.run(body, uniform) == A.tolist()

    def test_fma(self, uniform: bool) -> None:
        body = """
            %x = arith.sitofp %a : i32 to f32
            %y = arith.sitofp %b : i32 to f32
            %u = vector.broadcast %x : f32 to vector<2xf32>
            %v = vector.broadcast %y : f32 to vector<2xf32>
            %w = vector.fma %u, %v, %u : vector<2xf32>
            %e = vector.extract %w[1] : f32 from vector<2xf32>
            %r = arith.fptosi %e : f32 to i32"""
        assert self.run(body, uniform) == (A * B + A).tolist()

    def test_merge_after_a_branch(self, uniform: bool) -> None:
        body = (
            PAIR
            + """
            %c2 = arith.constant 2 : i32
            %c = arith.cmpi slt, %b, %c2 : i32
            %w = scf.if %c -> (vector<4xi32>) {
              scf.yield %v0 : vector<4xi32>
            } else {
              scf.yield %v1 : vector<4xi32>
            }
            %r = vector.extract %w[1] : i32 from vector<4xi32>"""
        )
        assert self.run(body, uniform) == [20, -7, 9, 20]


def test_position_out_of_range() -> None:
    body = PAIR + "%i = arith.index_cast %a : i32 to index\n%r = vector.extract %v0[%i] : i32 from vector<4xi32>"
    assert "beyond the 4 elements" in fault(entry(body, "%a: i32"), "E3202", a=4).message
