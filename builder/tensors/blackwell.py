# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Choices for kernels that multiply into tensor memory: tiled MMAs by types, layouts of shared memory, the copies of
operands and of results (CUTLASS's sm100_common.inl and sm100_builder.inl; sm_100a).
"""

from typing import Any

from ...base.errors import Code, TilefoldError
from ...layout.algebra.coalesce import coalesce
from ...layout.algebra.core import Layout, LayoutLike
from ...layout.algebra.inttuple import product
from ...layout.atoms.instructions import TmemLoad
from ...layout.atoms.tmem_copy import select_tmem_load
from ...layout.atoms.umma_smem import select_umma_mode
from ...layout.tma.tensor_map import check_rows
from ..scalars.dtypes import DTYPES, DType, as_dtype
from . import nvgpu, scaled_umma, tensor_memory, umma
from .coordinates import as_tuple, tuples
from .copies import ThrCopy, TiledCopy
from .copy_atoms import CopyAtom, make_copy_atom
from .hopper import LayoutEnum, add_stages
from .hopper import make_smem_layout_epi as _make_smem_layout_epi
from .nvgpu import CtaGroup
from .tiled_mma import TiledMma, make_tiled_mma
from .warpgroup import OperandMajorMode

_K_BITS = 256
"""The bits along K of an instruction."""
_LANES = 32
"""The lanes of tensor memory that a warp reaches."""


def make_trivial_tiled_mma(*given: object, **named: object) -> TiledMma:
    """The tiled MMA of one instruction for element types: `(a_dtype, b_dtype, a_leading_mode, b_leading_mode,
    acc_dtype, cta_group, mma_tiler_mn, a_source)`, or `ab_dtype` in place of the first two; A is in shared memory by
    default.
    Raises TilefoldError (E0302, E0304) where there is no such instruction, and (E5002) for a missing argument.
    """
    rest = ("acc_dtype", "cta_group", "mma_tiler_mn")
    a_dtype, b, a_major, b_major, acc, group, tiler, source = _arguments(given, named, rest)
    if a_dtype.bits in (16, 32) and b != a_dtype:
        raise TilefoldError(Code.MMA_OPERAND, f"tcgen05.mma does not multiply {a_dtype} with {b}")
    m, n = as_tuple(tuples(tiler))[:2]
    of_instruction = (
        (m, n, _K_BITS // max(a_dtype.bits, 8)), group, source, a_major, b_major,
    )  # fmt: skip
    if a_dtype.bits == 16:
        return make_tiled_mma(umma.MmaF16BF16Op(a_dtype, acc, *of_instruction))
    if a_dtype.bits == 32:
        return make_tiled_mma(umma.MmaTF32Op(*of_instruction))
    if a_dtype.is_integer:
        return make_tiled_mma(umma.MmaI8Op(a_dtype, *of_instruction, b))
    return make_tiled_mma(umma.MmaF8F6F4Op(a_dtype, b, acc, *of_instruction))


def make_blockscaled_trivial_tiled_mma(*given: object, **named: object) -> TiledMma:
    """The tiled MMA of one instruction with scale factors: `(a_dtype, b_dtype, a_leading_mode, b_leading_mode,
    sf_dtype, sf_vec_size, cta_group, mma_tiler_mn, a_source)`, as `make_trivial_tiled_mma`. Scales for 16 elements are
    those of two types of 4 bits; others are Float8E8M0FNU for 32. Raises TilefoldError (E0302, E0304) where there is
    no such instruction, and (E5002) for a missing argument, or scales that the instruction does not have.
    """
    rest = ("sf_dtype", "sf_vec_size", "cta_group", "mma_tiler_mn")
    a_dtype, b, a_major, b_major, factor, vector, group, tiler, place = _arguments(given, named, rest)
    m, n = as_tuple(tuples(tiler))[:2]
    are_narrow = a_dtype.bits == b.bits == 4
    if not (are_narrow and vector == 16) and (vector != 32 or factor != DTYPES["Float8E8M0FNU"]):
        problem = f"no multiplication of {a_dtype} and {b} has a scale of type {factor} for {vector} elements"
        raise TilefoldError(Code.BUILD_VALUE, problem, "Float8E8M0FNU for 32, or with types of 4 bits a scale for 16")
    if are_narrow:
        shape = m, n, _K_BITS // 4
        if vector == 16:
            return make_tiled_mma(scaled_umma.MmaMXF4NVF4Op(factor, shape, group, place))
        return make_tiled_mma(scaled_umma.MmaMXF4Op(shape, group, place))
    return make_tiled_mma(scaled_umma.MmaMXF8F6F4Op(a_dtype, b, (m, n, _K_BITS // 8), group, place, a_major, b_major))


def _arguments(given: tuple[object, ...], named: dict[str, Any], rest: tuple[str, ...]) -> list[Any]:
    """The arguments in order, with the type of B, which may be left out, and the place of A."""
    is_one_type = "ab_dtype" in named or (len(given) > 1 and isinstance(given[1], OperandMajorMode))
    names = ("ab_dtype",) if is_one_type else ("a_dtype", "b_dtype")
    every = (*names, "a_leading_mode", "b_leading_mode", *rest, "a_source")
    values = {"a_source": umma.OperandSource.SMEM, **dict(zip(every, given, strict=False)), **named}
    lacking, unknown = [name for name in every if name not in values], sorted(set(values) - set(every))
    if lacking or unknown or len(given) > len(every):
        problem = (
            f"has no {lacking[0]}" if lacking else f"takes no {unknown[0]}" if unknown else "has too many arguments"
        )
        raise TilefoldError(Code.BUILD_VALUE, f"the tiled MMA {problem}", f"it takes {', '.join(every)}")
    ordered = [values[name] for name in every]
    return ordered[:1] + ordered if is_one_type else ordered


def check_gemm_tma_alignment(
    m: int, n: int, k: int, a_dtype: DType, b_dtype: DType, d_dtype: DType, a_major: str, b_major: str, d_major: str,
    output_tensor_name: str = "D",
) -> None:  # fmt: skip
    """Checks that TMA copies reach A (M,K), B (N,K) and D (M,N), each with the letter of its contiguous mode: "m",
    "n" or "k". Raises `LayoutError` (E0322) for a tensor whose contiguous mode is not a multiple of 16 bytes (CUDA
    Driver API, cuTensorMapEncodeTiled: globalStrides).
    """
    tensors = (
        ("A", a_dtype, a_major, {"m": m, "k": k}),
        ("B", b_dtype, b_major, {"n": n, "k": k}),
        (output_tensor_name, d_dtype, d_major, {"m": m, "n": n}),
    )
    for name, dtype, major, extents in tensors:
        if major not in extents:
            raise TilefoldError(Code.BUILD_VALUE, f"{name} has the modes {', '.join(extents)}, and not {major!r}")
        check_rows(name, extents[major] * dtype.bits)


def make_smem_layout_a(
    tiled_mma: TiledMma, mma_tiler_mnk: Any, a_dtype: Any, num_stages: int, *, is_k_major: bool | None = None
) -> LayoutLike:
    """The layout of shared memory for stages of a block's part of A, ((MMA_M,MMA_K),RestM,RestK,stages), by the widest
    swizzle that divides the part. Its contiguous mode is that of the MMA, unless `is_k_major` says another.
    """
    m, _, k = as_tuple(tuples(mma_tiler_mnk))
    major = _major(tiled_mma.op.a_major_mode, is_k_major)
    return _staged(tiled_mma.partition_shape_A((m, k)), major, a_dtype, num_stages)


def make_smem_layout_b(
    tiled_mma: TiledMma, mma_tiler_mnk: Any, b_dtype: Any, num_stages: int, *, is_k_major: bool | None = None
) -> LayoutLike:
    """The same for B, ((MMA_N,MMA_K),RestN,RestK,stages)."""
    _, n, k = as_tuple(tuples(mma_tiler_mnk))
    major = _major(tiled_mma.op.b_major_mode, is_k_major)
    return _staged(tiled_mma.partition_shape_B((n, k)), major, b_dtype, num_stages)


def _major(of_mma: OperandMajorMode, is_k_major: bool | None) -> OperandMajorMode:
    return of_mma if is_k_major is None else OperandMajorMode.K if is_k_major else OperandMajorMode.MN


def get_smem_layout_atom_ab(major_mode: OperandMajorMode, element_type: object, smem_shape_mn_k: object) -> Any:
    """The layout of shared memory by its widest swizzle that divides a tile (MN,K) with `major_mode` contiguous: a
    member of `SmemLayoutAtomKind`.
    """
    rows, depth = (product(mode) for mode in as_tuple(tuples(smem_shape_mn_k))[:2])
    mode = select_umma_mode(major_mode.value, max(as_dtype(element_type).bits, 4), rows, depth)
    return umma.SmemLayoutAtomKind(f"{major_mode.value}_{mode}")


def _staged(part: Any, major: OperandMajorMode, dtype: Any, stages: int) -> LayoutLike:
    (rows, depth), more, deeper = part
    kind = get_smem_layout_atom_ab(major, dtype, (product(rows) * more, product(depth) * deeper))
    atom = umma.make_smem_layout_atom(kind, dtype)
    order = (1, 2, 3) if major is OperandMajorMode.K else (2, 1, 3)
    staged = tensor_memory.tile_to_mma_shape(atom, (*part, stages), order)
    return coalesce(staged, ((1, 1), 1, 1, 1))  # the stages are one mode of one stride, as programs read it


def make_smem_layout(
    leading_mode: OperandMajorMode, smem_tile_shape: object, dtype: object, num_stages: int
) -> LayoutLike:
    """The layout of shared memory for stages of a tile (MN,K,stages) whose contiguous mode is `leading_mode`."""
    rows, depth = as_tuple(tuples(smem_tile_shape))[:2]
    layout = LayoutEnum.ROW_MAJOR if leading_mode is OperandMajorMode.K else LayoutEnum.COL_MAJOR
    return add_stages(layout, (rows, depth), dtype, num_stages)


def make_smem_layout_epi(epi_dtype: object, epi_layout: LayoutEnum, epi_tile: object, epi_stage: int) -> LayoutLike:
    """The layout of shared memory for stages of an epilogue's tile of C: (M,N,stages)."""
    m, n = (product(mode.shape if isinstance(mode, Layout) else mode) for mode in as_tuple(tuples(epi_tile)))
    return _make_smem_layout_epi(epi_dtype, epi_layout, (m, n), epi_stage)


def _warps(rows: int, use_2cta_instrs: bool) -> tuple[int, int]:
    """How the four warps of an epilogue share the tile of a block: along M, and along N where a pair multiplies 128
    rows.
    """
    return (2, 2) if use_2cta_instrs and rows == 64 else (4, 1)


def compute_epilogue_tile_shape(
    cta_tile_shape: object,
    use_2cta_instrs: bool,
    layout_d: LayoutEnum,
    elem_ty_d: DType,
    *,
    layout_c: LayoutEnum | None = None,
    elem_ty_c: DType | None = None,
) -> tuple[Layout, Layout] | tuple[Layout, LayoutLike]:
    """The part of a block's tile of D that an epilogue handles at a time, a tiler (M,N): 4096 elements where it loads
    no C, else 32 or 64 columns by the width of the elements and the tile.

    Raises TilefoldError (E0304) for a tile with fewer columns than the four warps store.
    """
    cta_m, cta_n = as_tuple(tuples(cta_tile_shape))[:2]
    _, along_n = _warps(cta_m, use_2cta_instrs)
    m, n = compute_epilogue_tile_size(
        cta_m, cta_n, use_2cta_instrs, elem_ty_d.bits, None if elem_ty_c is None else elem_ty_c.bits,
        d_is_m_major=layout_d.is_m_major_c(), c_is_m_major=layout_c is None or layout_c.is_m_major_c(),
    )  # fmt: skip
    if along_n == 1:
        return Layout(m, 1), Layout(n, 1)
    return Layout(m, 1), coalesce(Layout((n // along_n, along_n), (1, cta_n // along_n)))


def compute_epilogue_tile_size(
    cta_tile_m: int,
    cta_tile_n: int,
    use_2cta_instrs: bool,
    elem_width_d: int,
    elem_width_c: int | None = None,
    *,
    d_is_m_major: bool = False,
    c_is_m_major: bool = False,
) -> tuple[int, int]:
    """The rows and columns of `compute_epilogue_tile_shape`, by the bits of the elements of D, and of C where one is
    loaded. Raises TilefoldError (E0304) as it does.
    """
    along_m, along_n = _warps(cta_tile_m, use_2cta_instrs)
    m = min(cta_tile_m, _LANES * along_m)
    bits = max(elem_width_d, elem_width_c or 0)
    if elem_width_c is None:
        fast = (8192 if bits == 4 else 4096) // m
    elif bits == 32:
        fast = 16 if cta_tile_m > 64 and cta_tile_n <= 128 else 32
    else:
        fast = 32 if bits == 16 and cta_tile_n <= 128 else 64
    of_c = 8 if elem_width_c is None else _least(c_is_m_major, elem_width_c)
    least = max(_least(d_is_m_major, elem_width_d), of_c) * along_n
    if cta_tile_n < least:
        text = f"a tile of {cta_tile_n} columns has fewer than the {least} that the warps of an epilogue store"
        raise TilefoldError(Code.ATOM_OPERAND, text, "use a larger tile along N")
    n = min(cta_tile_n, max(fast, least))
    return m, n if cta_tile_n % n == 0 else cta_tile_n


def _least(is_m_major: bool, bits: int) -> int:
    """The columns that a warp stores at least: 16 bytes of a row."""
    return 8 if is_m_major else 128 * (bits if bits == 6 else 1) // bits


def get_tmem_load_op(
    cta_tile_shape: object,
    layout_d: LayoutEnum,
    elem_ty_d: DType,
    elem_ty_acc: DType,
    epi_tile: object,
    use_2cta_instrs: bool,
) -> CopyAtom:
    """The copy atom that loads an epilogue's tile from tensor memory, as wide as its columns allow: 32 lanes where the
    warp has as many, or 16 lanes in the fragments that stmatrix stores. Raises TilefoldError (E0304) for types that no
    load suits (CUTLASS's sm100_get_tmem_load_op).
    """
    m, n = (product(mode.shape if isinstance(mode, Layout) else mode) for mode in as_tuple(tuples(epi_tile))[:2])
    along_m, along_n = _warps(as_tuple(tuples(cta_tile_shape))[0], use_2cta_instrs)
    major = "M" if layout_d.is_m_major_c() else "N"
    load = select_tmem_load(elem_ty_acc.bits, elem_ty_d.bits, m // along_m, n // along_n, major).contract.instruction
    assert isinstance(load, TmemLoad)
    packing = tensor_memory.Pack.PACK_16b_IN_32b if load.pack else tensor_memory.Pack.NONE
    return make_copy_atom(tensor_memory.LOADS[load.shape](tensor_memory.Repetition(load.num), packing), elem_ty_acc)


def get_smem_store_op(
    layout_d: LayoutEnum, elem_ty_d: DType, elem_ty_acc: DType, tiled_tmem_load: TiledCopy | ThrCopy
) -> CopyAtom:
    """The copy atom that moves results from registers to shared memory: matrices of 16-bit elements (stmatrix) where
    the load from tensor memory leaves their fragments, transposed if M is contiguous; else accesses as wide as layouts
    allow.
    """
    lanes, width, times, _ = tensor_memory.get_tmem_copy_properties(tiled_tmem_load)
    fragments = 256 if elem_ty_acc.bits == 32 else 128
    if elem_ty_d.bits == 16 and (lanes, width) == (16, fragments):
        return make_copy_atom(nvgpu.StMatrix8x8x16bOp(layout_d.is_m_major_c(), 2 if times == 1 else 4), elem_ty_d)
    return make_copy_atom(nvgpu.CopyUniversalOp(), elem_ty_d)


def cluster_shape_to_tma_atom_A(cluster_shape_mnk: object, atom_thr_id: object) -> nvgpu.CopyBulkTensorTileG2SOp:
    """The TMA copy of A: to the blocks along N of a cluster at once, if there are several."""
    return _operand_copy(atom_thr_id, as_tuple(tuples(cluster_shape_mnk))[1] > 1)


def cluster_shape_to_tma_atom_B(cluster_shape_mnk: object, atom_thr_id: object) -> nvgpu.CopyBulkTensorTileG2SOp:
    """The TMA copy of B: to the blocks, or pairs, along M of a cluster at once, if there are several."""
    return _operand_copy(atom_thr_id, as_tuple(tuples(cluster_shape_mnk))[0] > _blocks(atom_thr_id))


def cluster_shape_to_tma_atom_SFB(cluster_shape_mnk: object, atom_thr_id: object) -> nvgpu.CopyBulkTensorTileG2SOp:
    """The TMA copy of the scale factors of B. Each block of a pair has all of them."""
    return _operand_copy(atom_thr_id, as_tuple(tuples(cluster_shape_mnk))[0] > 1)


def _blocks(atom_thr_id: Any) -> int:
    return product(atom_thr_id.shape)


def _operand_copy(atom_thr_id: object, multicast: bool) -> nvgpu.CopyBulkTensorTileG2SOp:
    kind = nvgpu.CopyBulkTensorTileG2SMulticastOp if multicast else nvgpu.CopyBulkTensorTileG2SOp
    return kind(CtaGroup.TWO if _blocks(atom_thr_id) == 2 else CtaGroup.ONE)
