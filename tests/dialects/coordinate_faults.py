# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: E501 - a fault and its message stand on one line
"""A program for every rule of coordinate tensors that breaks it."""

from tests.dialects.faults import Fault, tile_faults

_C = '!tile.coord_tensor<"(0,0) o (64,32):(1@0,1@1)">'
_I = '%c2 = tile.identity "(64,32)"\n'


def _types(*cases: tuple[str, str]) -> list[Fault]:
    return [Fault("tile.coord_tensor", f"!t = {type}\n", said) for type, said in cases]


COORDINATES = [
    *tile_faults(
        "tile.identity",
        ("%0 = tile.identity like «%t»", "expected a tensor, got a value of type index"),
        ('%0 = tile.identity «"(64,0)"»', "E0205"),
        ('%0 = tile.identity "(64,«x»)"', "E0101"),
        ('%0 = tile.identity «"(4611686018427387904,2)"»', "E0103"),
        ('%0 = «tile.identity» "(64,?)"', "1 dynamic extents, not 0"),
        ('%0 = «tile.identity» "(64,0)" : ' + _C, "E0205"),
        ('%0 = «tile.identity» "(64,16)" : ' + _C, "the result is"),
        ('%0 = «"tile.identity"»() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> ' + _C, "needs a shape, or a tensor"),
    ),
    *tile_faults(
        "tile.coordinate",
        ("%0, %1 = tile.coordinate «%A»(0, 0)", "expected a coordinate tensor, got a value of type !tile.tensor"),
        (_I + "%0, %1 = «tile.coordinate» %c2(0, _)", "has no '_'"),
        (_I + "%0, %1 = «tile.coordinate» %c2(0, 0, 0)", "E0201"),
        (_I + "%0, %1 = «tile.coordinate» %c2(0, 32)", "E0215"),
        (_I + '%0 = «"tile.coordinate"»(%c2) <{coord = #cute.coord<"(0,0)">}> : (' + _C + ") -> index", "has 2 integers"),
        (_I + '%0:2 = «"tile.coordinate"»(%c2) <{coord = #cute.coord<"(0,?)">}> : (' + _C + ") -> (index, index)",
         "the coordinate names 1 operands, not 0"),
    ),
    *tile_faults(
        "tile.bounds",
        (_I + "%0 = «tile.bounds» %c2, (%t)", "are nested differently from the coordinates"),
        (_I + "%0 = «tile.bounds» %c2, ((%t, 0), 1)", "are nested differently from the coordinates"),
        ('%0 = tile.identity "(?,32)" (%t) : !tile.coord_tensor<"(0,0) o (?,32):(1@0,1@1)">\n%1 = tile.bounds «%0, (1, 2)»', "E0207"),
        ('%0 = tile.identity "(?,32)" (%t) : !tile.coord_tensor<"(0,0) o (?,32):(1@0,1@1)">\n'
         '%1 = «tile.bounds» %0, (1, 2) : !tile.tensor<i1, rmem, align<1>, "(64,32):(1,64)">', "E0207"),
        (_I + '%0 = «tile.bounds» %c2, (1, 2) : !tile.tensor<i1, rmem, align<1>, "8:1">', "the result is"),
    ),
    *_types(
        ('«!tile.coord_tensor<"(0,_) o (64,32):(1@0,1@1)">»', "not a coordinate of integers"),
        ('«!tile.coord_tensor<"(0,-1) o (64,32):(1@0,1@1)">»', "not a coordinate of integers"),
        ('!tile.coord_tensor<"0 o «S»<2,3,3> o 0 o (64,32):(1,64)">', "E0101"),
        ('«!tile.coord_tensor<"(0,0) o (64,32):(1@0,1@2)">»', "not a step along an axis"),
        ('«!tile.coord_tensor<"(0,(0,0)) o (64,32):(1@0,1@1)">»', "not a step along an axis"),
        ('«!tile.coord_tensor<"(0,0) o (64,32):(1@0,-1@1)">»', "not a step along an axis"),
    ),
]  # fmt: skip
