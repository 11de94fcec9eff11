# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mutants of the emission of LLVM IR from stage `instr`."""

from tests.mutants.mutant import EMISSION, Mutant, Place, of


def _of(file: str, *tests: str) -> Place:
    return of(EMISSION, f"compiler/emit/{file}.py", *(f"emit/{test}" for test in tests))


_ARITH = _of("arith", "test_semantics")
_CONVERT = _of("convert", "test_semantics", "test_cpu")
_CONTROL = _of("control", "test_semantics")
_VECTOR = _of("vector", "test_semantics")
_MEMORY = _of("ptx_memory", "test_exact")
_WARP = _of("ptx_warp", "test_instructions")
_MATRIX = _of("ptx_warp", "test_instructions")
_ASYNC = _of("ptx_async", "test_instructions")
_ATOMIC = _of("ptx_atomic", "test_instructions")


def _run(file: str) -> Place:
    """A file whose mutants show where the examples' PTX runs."""
    return of(EMISSION, f"compiler/emit/{file}.py", "ptx/test_stage")


_STORED = "tests/mutants/programs/stored.cute"
_SIGNALS = "tests/mutants/programs/signals.cute"
_EMITTED = "tests/mutants/programs/emitted.cute"

_COMPUTED = "tests/mutants/programs/computed.cute"
_OTHERS = {
    "AddiOp": ("add", "sub"), "SubiOp": ("sub", "add"), "MuliOp": ("mul", "shl"), "ShLIOp": ("shl", "lshr"),
    "ShRSIOp": ("ashr", "lshr"), "DivSIOp": ("sdiv", "udiv"), "RemSIOp": ("srem", "urem"), "DivUIOp": ("udiv", "sdiv"),
    "AndIOp": ("and", "or"), "OrIOp": ("or", "lshr"), "XOrIOp": ("xor", "lshr"), "MinSIOp": ("smin", "umin"),
    "MaxSIOp": ("smax", "umax"), "MinUIOp": ("umin", "smin"), "AddfOp": ("fadd", "fsub"), "SubfOp": ("fsub", "fadd"),
    "MulfOp": ("fmul", "fdiv"), "DivfOp": ("fdiv", "fmul"),
}  # fmt: skip
"""Operations of `arith` whose mutant emits another instruction of LLVM."""

EMITTED: tuple[Mutant, ...] = (
    *(
        _ARITH.mutant(f"emit: {one} is {other}", f'arith.{op}: "{one}"', f'arith.{op}: "{other}"', _COMPUTED)
        for op, (one, other) in _OTHERS.items()
    ),
    _ARITH.mutant("emit: floor is ceiling", 'math.FloorOp: "floor"', 'math.FloorOp: "ceil"', _COMPUTED),
    _CONVERT.mutant("emit: zero extension of signed", 'arith.ExtSIOp: "sext"', 'arith.ExtSIOp: "zext"', _COMPUTED),
    _ARITH.mutant(
        "emit: choices swapped",
        "f\"select{flags(op)} {', '.join(w.typed(operand) for operand in op.operands)}\"",
        "f\"select{flags(op)} {', '.join(w.typed(op.operands[k]) for k in (0, 2, 1))}\"",
        _COMPUTED,
    ),
    _ARITH.mutant("emit: logical shift is arithmetic", 'arith.ShRUIOp: "lshr"', 'arith.ShRUIOp: "ashr"', _EMITTED),
    _ARITH.mutant("emit: unsigned remainder is signed", 'arith.RemUIOp: "urem"', 'arith.RemUIOp: "srem"', _EMITTED),
    _ARITH.mutant("emit: greatest of unsigned is signed", 'arith.MaxUIOp: "umax"', 'arith.MaxUIOp: "smax"', _EMITTED),
    _ARITH.mutant(
        "emit: ceiling where the division is exact",
        'inexact = w.temp(f"icmp ne {type} {rest}, zeroinitializer")\n    w.define',
        'inexact = w.temp(f"icmp eq {type} {rest}, zeroinitializer")\n    w.define',
        _EMITTED,
    ),
    _CONVERT.mutant("emit: sign extension of unsigned", 'arith.ExtUIOp: "zext"', 'arith.ExtUIOp: "sext"', _EMITTED),
    _CONTROL.mutant(
        "emit: one more iteration", 'f"icmp slt {w.typed(counter)}', 'f"icmp sle {w.typed(counter)}', _EMITTED
    ),
    _CONTROL.mutant(
        "emit: loop hands on its start",
        "w.bind(result, w.ref(carried))",
        "w.bind(result, w.ref(op.iter_args[0]))",
        _EMITTED,
    ),
    _MEMORY.mutant("emit: loads that LLVM may drop", "load volatile {moved}", "load {moved}", _STORED),
    _MEMORY.mutant("emit: stores that LLVM may drop", "store volatile {value}", "store {value}", _STORED),
    _ASYNC.mutant("emit: waits for the first phase", "{test} done, [$0], $1;", "{test} done, [$0], 0;", _SIGNALS),
    _WARP.mutant(
        "emit: barrier of more threads",
        "i32 {op.threads.value.data}",
        "i32 {op.threads.value.data + 32}",
        _SIGNALS,
    ),
    _WARP.mutant(
        "emit: wait for one group less",
        "wait.group(i32 {op.n.value.data})",
        "wait.group(i32 {op.n.value.data + 1})",
        "examples/hgemm.cute",
    ),
    _WARP.mutant(
        "emit: barrier of the block lost",
        'w.emit(f"call void @llvm.nvvm.barrier.cta.sync{_aligned(op)}.all({_number(w, op)})")',
        "pass",
        "examples/hgemm.cute",
    ),
    _WARP.mutant(
        "emit: another barrier",
        "    first = op.id.value.data\n",
        "    first = op.id.value.data + 1\n",
        "examples/hgemm.cute",
    ),
    _WARP.mutant(
        "emit: group never committed",
        '(ptx.CpAsyncCommitGroupOp, call_rule("@llvm.nvvm.cp.async.commit.group"))',
        '(ptx.CpAsyncCommitGroupOp, call_rule("@llvm.nvvm.cp.async.wait.all"))',
        "examples/hgemm.cute",
    ),
    _WARP.mutant("emit: warp's barrier of all lanes", 'f"i32 {op.mask.value.data}" if', '"i32 -1" if', _STORED),
    _MATRIX.mutant(
        "emit: matrices not transposed",
        'trans = ".trans" if op.trans is not None else ""\n        name = f"llvm.nvvm.ldmatrix',
        'trans = ""\n        name = f"llvm.nvvm.ldmatrix',
        "examples/ldmatrix.cute",
    ),
    _MATRIX.mutant(
        "emit: matrices in reverse",
        "insertelement {type} {whole}, i32 {part}, i32 {index}",
        "insertelement {type} {whole}, i32 {part}, i32 {count - 1 - index}",
        "examples/ldmatrix.cute",
    ),
    _ASYNC.mutant(
        "emit: bulk groups never waited for",
        '{op.n.value.data};", "", ()))',
        '{op.n.value.data + 1};", "", ()))',
        "examples/tma_copy.cute --target sm_90a",
    ),
    _ATOMIC.mutant("emit: fence lost", "(ptx.FenceOp, ordered())", "(ptx.FenceOp, lambda w, op: None)", _STORED),
    _run("control").mutant(
        "emit: branch inverted",
        "label %{then}, label %{other if len(arms) == 2 else end}",
        "label %{other if len(arms) == 2 else end}, label %{then}",
        "examples/softmax.cute",
    ),
    _run("ptx_memory").mutant(
        "emit: distances in units of two bytes",
        "getelementptr i8, {w.typed(op.ptr)}",
        "getelementptr i16, {w.typed(op.ptr)}",
        "examples/softmax.cute",
    ),
    _run("ptx_memory").mutant(
        "emit: descriptor of another address",
        "lshr i32 {in_block}, 4",
        "lshr i32 {in_block}, 3",
        "examples/gemm_sm90.cute",
    ),
    _run("ptx_warp").mutant(
        "emit: matrices stored in reverse",
        "i32 {index}')}\" for index in range(count)]",
        "i32 {index}')}\" for index in reversed(range(count))]",
        "examples/gemm_sm90.cute",
    ),
    _run("ptx_wgmma").mutant(
        "emit: sum begins where it should go on", "setp.ne.b32 p", "setp.eq.b32 p", "examples/gemm_sm90.cute"
    ),
    _run("ptx_wgmma").mutant(
        "emit: wait for one multiplication less",
        '_call_tied(w, op, f"{op.mnemonic()} {op.n.value.data};")',
        '_call_tied(w, op, f"{op.mnemonic()} {op.n.value.data + 1};")',
        "examples/gemm_sm90.cute",
    ),
    _run("ptx_async").mutant(
        "emit: coordinates of a copy reversed",
        "for number in range(len(op.coords))",
        "for number in reversed(range(len(op.coords)))",
        "examples/tma_copy.cute --target sm_90a",
    ),
    _run("ptx_warp").mutant(
        "emit: segments of 16 lanes", "{op.control}", "{op.control | 0x1000}", "examples/softmax.cute"
    ),
)
