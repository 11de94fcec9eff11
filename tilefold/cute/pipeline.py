# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.pipeline`: producers and consumers of stages in shared memory, and the barriers between them."""

from tilefold.builder.pipelines.barriers import (
    NamedBarrier,
    PipelineOrder,
    agent_sync,
    alloc_reserved_mbarrier,
    arrive,
    arrive_and_wait,
    pipeline_init_arrive,
    pipeline_init_wait,
    sync,
)
from tilefold.builder.pipelines.groups import Agent, CooperativeGroup, PipelineOp, PipelineUserType
from tilefold.builder.pipelines.mbarrier_array import MbarrierArray, TmaStoreFence
from tilefold.builder.pipelines.participants import (
    PipelineConsumer,
    PipelineProducer,
    PipelineState,
    make_pipeline_state,
)
from tilefold.builder.pipelines.pipelines import (
    PipelineAsync,
    PipelineCpAsync,
    PipelineTmaAsync,
    PipelineTmaStore,
)
from tilefold.builder.pipelines.tensor_core_pipelines import (
    PipelineAsyncUmma,
    PipelineClcFetchAsync,
    PipelineTmaMultiConsumersAsync,
    PipelineTmaUmma,
    PipelineUmmaAsync,
)

from .public import publish

__all__ = [
    "Agent", "CooperativeGroup", "MbarrierArray", "NamedBarrier", "PipelineAsync", "PipelineAsyncUmma",
    "PipelineClcFetchAsync", "PipelineConsumer", "PipelineCpAsync", "PipelineOp", "PipelineOrder", "PipelineProducer",
    "PipelineState", "PipelineTmaAsync", "PipelineTmaMultiConsumersAsync", "PipelineTmaStore", "PipelineTmaUmma",
    "PipelineUmmaAsync", "PipelineUserType", "TmaStoreFence", "agent_sync", "alloc_reserved_mbarrier", "arrive",
    "arrive_and_wait", "make_pipeline_state", "pipeline_init_arrive", "pipeline_init_wait", "sync",
]  # fmt: skip

publish(__name__)
