# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every pass by its name. A pass's module is imported when the pass is asked for."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from xdsl.passes import ModulePass


def _check_target() -> type[ModulePass]:
    from .check_target import CheckTargetPass

    return CheckTargetPass


def _check_stage() -> type[ModulePass]:
    from .check_stage import CheckStagePass

    return CheckStagePass


def _fold_layouts() -> type[ModulePass]:
    from .fold_layouts import FoldLayoutsPass

    return FoldLayoutsPass


def _expand_gemms() -> type[ModulePass]:
    from .expand_gemms import ExpandGemmsPass

    return ExpandGemmsPass


def _expand_copies() -> type[ModulePass]:
    from .expand_copies import ExpandCopiesPass

    return ExpandCopiesPass


def _expand_maps() -> type[ModulePass]:
    from .expand_maps import ExpandMapsPass

    return ExpandMapsPass


def _expand_conversions() -> type[ModulePass]:
    from .expand_conversions import ExpandConversionsPass

    return ExpandConversionsPass


def _lower_tensors() -> type[ModulePass]:
    from .lower_tensors import LowerTensorsPass

    return LowerTensorsPass


def _combine_remainders() -> type[ModulePass]:
    from .combine_remainders import CombineRemaindersPass

    return CombineRemaindersPass


def _unroll_loops() -> type[ModulePass]:
    from .unroll_loops import UnrollLoopsPass

    return UnrollLoopsPass


def _merge_accesses() -> type[ModulePass]:
    from .merge_accesses import MergeAccessesPass

    return MergeAccessesPass


def _expand_atoms() -> type[ModulePass]:
    from .expand_atoms import ExpandAtomsPass

    return ExpandAtomsPass


def _allocate_smem() -> type[ModulePass]:
    from .allocate_smem import AllocateSmemPass

    return AllocateSmemPass


def _convert_index() -> type[ModulePass]:
    from .convert_index import ConvertIndexPass

    return ConvertIndexPass


def _strength_reduce() -> type[ModulePass]:
    from .strength_reduce import StrengthReducePass

    return StrengthReducePass


def _cute_fold_static() -> type[ModulePass]:
    from .cute_ir.cute_fold_static import CuteFoldStaticPass

    return CuteFoldStaticPass


def _cute_expand_ops() -> type[ModulePass]:
    from .cute_ir.cute_expand_ops import CuteExpandOpsPass

    return CuteExpandOpsPass


def _cute_to_base() -> type[ModulePass]:
    from .cute_ir.cute_to_base import CuteToBasePass

    return CuteToBasePass


def _gpu_to_ptx() -> type[ModulePass]:
    from .cute_ir.gpu_to_ptx import GpuToPtxPass

    return GpuToPtxPass


def _inline_calls() -> type[ModulePass]:
    from .cute_ir.inline_calls import InlineCallsPass

    return InlineCallsPass


def _cse() -> type[ModulePass]:
    from .cse import CsePass

    return CsePass


def _reconcile_unrealized_casts() -> type[ModulePass]:
    from xdsl.transforms.reconcile_unrealized_casts import ReconcileUnrealizedCastsPass

    return ReconcileUnrealizedCastsPass


def _dce() -> type[ModulePass]:
    from xdsl.transforms.dead_code_elimination import DeadCodeElimination

    return DeadCodeElimination


def _base_prepare() -> type[ModulePass]:
    from .cute_ir.base_prepare import BasePreparePass

    return BasePreparePass


def _one_shot_convert_to_llvm() -> type[ModulePass]:
    from .cute_ir.one_shot_convert_to_llvm import OneShotConvertToLLVMPass

    return OneShotConvertToLLVMPass


def _attach_nvvm_target() -> type[ModulePass]:
    from .cute_ir.attach_nvvm_target import AttachNvvmTargetPass

    return AttachNvvmTargetPass


OUR_PASSES: Mapping[str, Callable[[], type[ModulePass]]] = MappingProxyType({
    "check-target": _check_target,
    "check-stage": _check_stage,
    "fold-layouts": _fold_layouts,
    "expand-gemms": _expand_gemms,
    "expand-copies": _expand_copies,
    "expand-maps": _expand_maps,
    "expand-conversions": _expand_conversions,
    "lower-tensors": _lower_tensors,
    "combine-remainders": _combine_remainders,
    "unroll-loops": _unroll_loops,
    "merge-accesses": _merge_accesses,
    "expand-atoms": _expand_atoms,
    "allocate-smem": _allocate_smem,
    "convert-index": _convert_index,
    "strength-reduce": _strength_reduce,
    "cse": _cse,
    "base-prepare": _base_prepare,
    "cute-fold-static": _cute_fold_static,
    "cute-expand-ops": _cute_expand_ops,
    "cute-to-base": _cute_to_base,
    "gpu-to-ptx": _gpu_to_ptx,
    "inline-calls": _inline_calls,
    "one-shot-convert-to-llvm": _one_shot_convert_to_llvm,
    "attach-nvvm-target": _attach_nvvm_target,
})  # fmt: skip
"""The passes that tilefold defines."""

PASSES: Mapping[str, Callable[[], type[ModulePass]]] = MappingProxyType({
    **OUR_PASSES,
    "dce": _dce,
    "reconcile-unrealized-casts": _reconcile_unrealized_casts,
})  # fmt: skip
"""All passes of the command line: ours, and those of xDSL that the pipeline uses."""
