# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM optimises arithmetic; memory instructions stay as many, as wide and where the program puts them."""

from tilefold.compiler.reports.kernel_report import count_instructions

from tests.emit.harness import kernel, ptx_of

ARGS = "%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16, %n: i32"


def _memory(text: str) -> dict[str, int]:
    counts = count_instructions(ptx_of(text))["k"]
    prefixes = (
        "ld.global",
        "st.global",
        "ld.shared",
        "st.shared",
        "ld.local",
        "st.local",
        "ld.vol",
        "st.vol",
    )
    return {name: n for name, n in counts.items() if name.startswith(prefixes)}


def test_load_that_nobody_uses_stays() -> None:
    assert _memory(kernel("%x = ptx.ld %A align 4 : !ptx.ptr<global> -> f32", ARGS)) == {"ld.global.b32": 1}


def test_load_of_which_one_element_is_used_stays_wide() -> None:
    text = kernel(
        """
        %v = ptx.ld %A align 16 : !ptx.ptr<global> -> vector<8xf16>
        %x = vector.extract %v[3] : f16 from vector<8xf16>
        ptx.st %x, %B align 2 : f16, !ptx.ptr<global>
        """,
        ARGS,
    )
    assert _memory(text) == {"ld.global.v4.b32": 1, "st.global.b16": 1}


def test_equal_loads_stay_two_and_adjacent_ones_are_not_merged() -> None:
    text = kernel(
        """
        %four = arith.constant 4 : i32
        %x = ptx.ld %A align 16 : !ptx.ptr<global> -> i32
        %y = ptx.ld %A align 16 : !ptx.ptr<global> -> i32
        %p = ptx.ptr_add %A, %four : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
        %z = ptx.ld %p align 4 : !ptx.ptr<global> -> i32
        %s = arith.addi %x, %y : i32
        %t = arith.addi %s, %z : i32
        ptx.st %t, %B align 4 : i32, !ptx.ptr<global>
        """,
        ARGS,
    )
    assert _memory(text) == {"ld.global.b32": 3, "st.global.b32": 1}


def test_stores_to_one_place_stay_two() -> None:
    store = "ptx.st %n, %A align 4 : i32, !ptx.ptr<global>\n"
    assert _memory(kernel(2 * store, ARGS)) == {"st.global.b32": 2}


def test_invariant_load_stays_in_its_loop() -> None:
    text = kernel(
        """
        %z = arith.constant 0 : i32
        %one = arith.constant 1 : i32
        scf.for %i = %z to %n step %one : i32 {
          %x = ptx.ld %A align 4 : !ptx.ptr<global> -> i32
          ptx.st %x, %B align 4 : i32, !ptx.ptr<global>
        }
        """,
        ARGS,
    )
    ptx = ptx_of(text)
    loop = ptx[ptx.index("$L__BB0_2:") :]
    assert loop.index("ld.global.b32") < loop.index("st.global.b32") < loop.index("bra")


def test_value_is_read_again_after_a_barrier() -> None:
    text = kernel(
        """
        %s = ptx.smem.addr 0
        ptx.st %n, %s align 4 : i32, !ptx.ptr<shared>
        ptx.bar.sync 0
        %x = ptx.ld %s align 4 : !ptx.ptr<shared> -> i32
        ptx.st %x, %B align 4 : i32, !ptx.ptr<global>
        """,
        ARGS,
        shared=128,
    )
    assert _memory(text) == {"st.shared.b32": 1, "ld.shared.b32": 1, "st.global.b32": 1}


def _fragment_copy(count: int, attribute: str) -> str:
    """Copies `count` vectors through a fragment, in two loops."""
    return kernel(
        f"""
        %z = arith.constant 0 : i32
        %one = arith.constant 1 : i32
        %sixteen = arith.constant 16 : i32
        %count = arith.constant {count} : i32
        %r = ptx.local.alloc {16 * count} align 16
        scf.for %i = %z to %count step %one : i32 {{
          %o = arith.muli %i, %sixteen : i32
          %p = ptx.ptr_add %A, %o : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
          %q = ptx.ptr_add %r, %o : !ptx.ptr<local>, i32 -> !ptx.ptr<local>
          %v = ptx.ld %p align 16 : !ptx.ptr<global> -> vector<4xf32>
          ptx.st %v, %q align 16 : vector<4xf32>, !ptx.ptr<local>
        }} {attribute}
        scf.for %i = %z to %count step %one : i32 {{
          %o = arith.muli %i, %sixteen : i32
          %p = ptx.ptr_add %B, %o : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
          %q = ptx.ptr_add %r, %o : !ptx.ptr<local>, i32 -> !ptx.ptr<local>
          %v = ptx.ld %q align 16 : !ptx.ptr<local> -> vector<4xf32>
          ptx.st %v, %p align 16 : vector<4xf32>, !ptx.ptr<global>
        }} {attribute}
        """,
        ARGS,
    )


def test_marked_loop_is_unrolled_and_its_fragment_lives_in_registers() -> None:
    ptx = ptx_of(_fragment_copy(64, "{unroll}"))
    assert _memory(_fragment_copy(64, "{unroll}")) == {"ld.global.v4.b32": 64, "st.global.v4.b32": 64}
    assert "bra" not in ptx
    assert "[%rd1+1008]" in ptx  # offsets are immediates


def test_unmarked_loop_stays_a_loop() -> None:
    memory = _memory(_fragment_copy(4, ""))
    assert (memory["ld.global.v4.b32"], memory["st.global.v4.b32"]) == (1, 1)
