# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The words of tasks and their resources."""

from enum import Enum, Flag, auto


class WorkAttr(Flag):
    """The attributes of a resource's work."""

    NONE = 0
    AUXILIARY = auto()
    """It prepares the resource, and needs no stage of its pipeline."""


class PipelineGroupMode(Enum):
    """How the pipelines of a group belong together."""

    Merge = auto()
    """Several producers and one consumer, whose release empties a stage of each member."""
    Fork = auto()
    """One producer and several consumers: its commit fills the same stage for each member."""


class SignalingThreads(Enum):
    """The blocks of a cluster that are on a side of a pipeline."""

    All = auto()
    CtaLeader = auto()
    """The block that leads its pair, or the first one of the cluster for answers of launch control."""


class PipelineType(Enum):
    """The sides of a pipeline, the producer first: TMA copies, threads, or multiplications."""

    TmaAsync = auto()
    TmaUmma = auto()
    AsyncAsync = auto()
    AsyncUmma = auto()
    UmmaAsync = auto()
    ClcFetchAsync = auto()


class TileSchedulerType(Enum):
    """The ways in which blocks come to their tiles."""

    StaticPersistent = auto()
    ClcDynamicPersistent = auto()
