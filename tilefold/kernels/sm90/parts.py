# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts that GEMMs for Hopper share: their sizes, tiles of operands in stages of shared memory, the way of the stages
to the consumers, and how a consumer writes its tile of D.

Operands may have a mode of groups behind: (M,K,groups).
"""

from dataclasses import dataclass
from typing import Any

from tilefold import cute
from tilefold.cute import pipeline, utils
from tilefold.cute.nvgpu import cpasync, warpgroup
from tilefold.cute.typing import Int, NumericMeta
from tilefold.cute.utils import hopper_helpers

from ..arguments import refuse

WARPGROUP = 128
"""The threads of a warpgroup."""
ROWS = 64
"""The rows of D that a warpgroup stores at a time."""
COLUMNS = 16
"""The columns of which a tile has a multiple."""
READ_ONCE = 0x12F0000000000000
"""The policy of the L2 cache for data that are read once: they leave the cache before others (evict_first)."""
BY_ROWS = utils.LayoutEnum.ROW_MAJOR


@dataclass(frozen=True)
class Config:
    """Sizes of the kernel: the tile of a block, its consumer warpgroups, the stages in shared memory, the blocks of a
    cluster along M and N, which share tiles of B and of A, whether consumers take turns, and the tiles in a group, in
    which they follow each other along M. `splits` blocks share the K of a tile (gemm_shared_k.py). With `swaps`, the
    operands change places, so that these sizes are those of tiles of B @ A^T.

    The defaults take 224 KiB of shared memory, which only compute capability 9.0 and 10.x have.
    """

    m: int = 128
    n: int = 128
    consumers: int = 2
    stages: int = 6
    cluster: tuple[int, int] = (1, 1)
    takes_turns: bool = True
    group: int = 8
    buffers: int = 2
    splits: int = 1
    swaps: bool = False

    def __post_init__(self) -> None:
        if self.splits > 1 and (self.takes_turns or self.cluster != (1, 1)):
            refuse("gemm", "blocks that share K are in no clusters, and their consumers share a tile")
        most = 2 if self.takes_turns else 3
        if self.m % (ROWS * self.sharing) or self.n % COLUMNS or not 1 <= self.consumers <= most:
            refuse("gemm", "a tile has 64 rows for each consumer that shares it, and a multiple of 16 columns")

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return WARPGROUP * (1 + self.consumers)

    @property
    def registers(self) -> tuple[int, int]:
        """The registers of a thread of the producer and of one of several consumers."""
        return (40, 232) if self.consumers == 2 else (32, 160)

    @property
    def sharing(self) -> int:
        """The consumers that share a tile."""
        return 1 if self.takes_turns else self.consumers

    def tiles(self, m: int, n: int) -> tuple[int, int]:
        """The tiles of D along M and N, or along N and M where the operands change places."""
        high, wide = (n, m) if self.swaps else (m, n)
        return -(-high // self.m), -(-wide // self.n)

    @property
    def shared_tiles(self) -> tuple[int, int]:
        """The blocks that load a tile of A together, and those that load a tile of B."""
        return self.cluster[1], self.cluster[0]


def load_of(blocks: int) -> Any:
    """The TMA copy of a tile that this many blocks load a part of each, for all of them."""
    return cpasync.CopyBulkTensorTileG2SOp() if blocks == 1 else cpasync.CopyBulkTensorTileG2SMulticastOp()


@cute.jit
def sync_consumer(group: Int):
    """The threads of a consumer wait for each other."""
    if group == 0:
        cute.arch.barrier(barrier_id=1, number_of_threads=WARPGROUP)
    elif group == 1:
        cute.arch.barrier(barrier_id=2, number_of_threads=WARPGROUP)
    else:
        cute.arch.barrier(barrier_id=3, number_of_threads=WARPGROUP)


def pipe_of(config: Config, defer_sync: bool = True) -> Any:
    """The stages of A and B on their way from the producer to the consumers of a tile, those of each block that loads
    into them. With `defer_sync` blocks wait for each other elsewhere.
    """
    thread, (share_a, share_b) = pipeline.Agent.Thread, config.shared_tiles
    return pipeline.PipelineTmaAsync.create(
        num_stages=config.stages,
        producer_group=pipeline.CooperativeGroup(thread),
        consumer_group=pipeline.CooperativeGroup(thread, 4 * config.sharing * (share_a + share_b - 1)),
        tx_count=128 * (config.m + config.n),
        cta_layout_vmnk=cute.make_layout((1, *config.cluster, 1)),
        defer_sync=defer_sync,
    )


def tiles_of(
    atom: Any, whole: cute.Tensor, shape: tuple[int, int], shared: cute.Tensor, place: Int = 0, blocks: int = 1
) -> Any:
    """Tiles in shared memory and those of a tensor, as this block of `blocks` moves them: (TMA,stage), (TMA,m,n)."""
    tiled = cute.local_tile(whole, shape, (None,) * cute.rank(whole))
    parts = cute.group_modes(shared, 0, 2), cute.group_modes(tiled, 0, 2)
    return cpasync.tma_partition(atom, place, cute.make_layout(blocks), *parts)


class Stages:
    """Tiles of A or B in shared memory, and the TMA copies that bring them there.

    `layout` is that of the stages; a tile is loaded by `share` blocks of a cluster together, of which this is number
    `rank`, for all in `mask`.
    """

    def __init__(
        self, tensor: Any, layout: Any, shape: tuple[int, int], share: int = 1, rank: Int = 0, mask: Any = None
    ):
        self.tensor = cute.make_smem_tensor(layout, tensor.element_type, alignment=1024)
        one = cute.slice_(layout, (None, None, 0))
        self.atom, whole = cpasync.make_tiled_tma_atom(load_of(share), tensor, one, shape, num_multicast=share)
        self.to, self.source = tiles_of(self.atom, whole, shape, self.tensor, rank, share)
        self.mask = mask if share > 1 else None

    def load(self, tile: tuple[object, ...], stage: Any, policy: int | None = None) -> None:
        """A thread begins the copy of a tile to a stage, by a policy of the L2 cache if there is one."""
        to, source = self.to[None, stage.index], self.source[(None, *tile)]
        cute.copy(self.atom, source, to, tma_bar_ptr=stage.barrier, mcast_mask=self.mask, cache_policy=policy)


def stages_of(
    mA: cute.Tensor, mB: cute.Tensor, config: Config, depth: int, cluster: Any = None, rank: Int = (0, 0, 0)
) -> tuple[Stages, Stages]:
    """The stages of A and of B for tiles of `depth` elements of K. A block of this `rank` loads parts of the tiles that
    blocks of its `cluster` share.
    """
    shape, (share_a, share_b) = (config.m, config.n, depth), config.shared_tiles
    major_a, major_b = (utils.LayoutEnum.from_tensor(tensor) for tensor in (mA, mB))
    layout_a = hopper_helpers.make_smem_layout_a(major_a, shape, mA.element_type, config.stages)
    layout_b = hopper_helpers.make_smem_layout_b(major_b, shape, mB.element_type, config.stages)
    mask_a = cpasync.create_tma_multicast_mask(cluster, rank, 1) if share_a > 1 else None
    mask_b = cpasync.create_tma_multicast_mask(cluster, rank, 0) if share_b > 1 else None
    stages_a = Stages(mA, layout_a, (config.m, depth), share_a, rank[1], mask_a)
    return stages_a, Stages(mB, layout_b, (config.n, depth), share_b, rank[0], mask_b)


def accumulated(dtype: NumericMeta) -> Any:
    """The type in which products of elements are summed."""
    return cute.Int32 if dtype.kind == "int" else cute.Float32


def warpgroup_mma(mA: cute.Tensor, mB: cute.Tensor, warpgroups: int, columns: int) -> Any:
    """The multiplication of 64 rows of A a warpgroup with this many rows of B, both in shared memory."""
    major_a, major_b = (utils.LayoutEnum.from_tensor(tensor).sm90_mma_major_mode() for tensor in (mA, mB))
    a, b = (cute.TFloat32 if matrix.element_type == cute.Float32 else matrix.element_type for matrix in (mA, mB))
    layout, tile = (warpgroups, 1, 1), (ROWS, columns)
    return hopper_helpers.make_trivial_tiled_mma(a, b, major_a, major_b, accumulated(a), layout, tile)


@cute.jit
def load_strips(producer: Any, begin: Int, end: Int, a: Any, of_a: tuple[Any, ...], b: Any, of_b: tuple[Any, ...]):
    """A warp loads strips of K, from number `begin` to `end`, of tiles of A and of B to their stages. A tile has a
    number along M or N, and in the modes behind.
    """
    for k in cute.range(begin, end):
        stage = producer.acquire_and_advance()
        with cute.arch.elect_one():
            a.load((of_a[0], k, *of_a[1:]), stage)
            b.load((of_b[0], k, *of_b[1:]), stage)
        stage.commit()


class Sums:
    """A consumer's sums of products, `part` of a multiplication's, whose operands are in stages `a` and `b`."""

    def __init__(self, part: Any, a: Any, b: Any, pipe: Any, consumer: Any, tile: tuple[int, int]):
        self.part, self.pipe, self.consumer = part, pipe, consumer
        self.a, self.b = part.make_fragment_A(part.partition_A(a)), part.make_fragment_B(part.partition_B(b))
        self.places = part.partition_C(cute.make_identity_tensor(tile))
        self.sums = part.make_fragment_C(self.places)

    def multiply(self, sums: cute.Tensor, goes_on: Int = False) -> None:
        """Begins to multiply the next stage, and to add the products to earlier ones if it `goes_on`."""
        stage, mma = self.consumer.wait_and_advance(), self.part.tiled_mma
        warpgroup.fence()
        for step in range(cute.size(self.a, 2)):
            mma.set(warpgroup.Field.ACCUMULATE, True if step > 0 else goes_on)
            place = (None, None, step, stage.index)
            cute.gemm(mma, sums, self.a[place], self.b[place], sums)
        warpgroup.commit_group()

    @cute.jit
    def add_up(self, count: Int):
        """Sums up the products of some stages."""
        before = self.consumer.state.clone()
        for k in cute.range(count):
            self.multiply(self.sums, k > 0)
            warpgroup.wait_group(1)
            if k > 0:  # the earlier products are complete
                self.pipe.consumer_release(before)
                before.advance()
        warpgroup.wait_group(0)
        self.pipe.consumer_release(before)


class Writer:
    """How consumers write D, 64 rows and 128 bytes of each at a time: through shared memory (stmatrix), then by TMA
    copies. `buffers` belong to each of `consumers` warpgroups.
    """

    def __init__(self, mD: cute.Tensor, consumers: int, buffers: int = 2):
        self.type, self.buffers = mD.element_type, buffers
        self.columns = 1024 // self.type.bits
        shape = ROWS, self.columns
        layout = hopper_helpers.make_smem_layout_epi(self.type, BY_ROWS, shape, buffers * consumers)
        self.shared = cute.make_smem_tensor(layout, self.type, alignment=1024)
        store, one = cpasync.CopyBulkTensorTileS2GOp(), cute.slice_(layout, (None, None, 0))
        self.atom, whole = cpasync.make_tiled_tma_atom(store, mD, one, shape)
        self.source, self.to = tiles_of(self.atom, whole, shape, self.shared)
        group = pipeline.CooperativeGroup(pipeline.Agent.Thread, WARPGROUP)
        self.stores = pipeline.PipelineTmaStore.create(num_stages=buffers, producer_group=group)
        self.buffer = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, buffers)

    def begin(self, thread: Int, own: Int) -> None:
        """A thread of consumer `own` prepares to write."""
        self.own, self.leads = own, cute.arch.make_warp_uniform(thread // 32) == 0
        k = warpgroup.OperandMajorMode.K
        # the accumulators of a part of D are those of a multiplication of its width, of any type
        half, single = cute.Float16, cute.Float32
        narrow = hopper_helpers.make_trivial_tiled_mma(half, half, k, k, single, (1, 1, 1), (ROWS, self.columns))
        to_shared = hopper_helpers.sm90_get_smem_store_op(BY_ROWS, self.type, single)
        r2s = cute.make_tiled_copy_C(to_shared, narrow).get_slice(thread)
        self.values = cute.make_rmem_tensor(cute.make_layout(((2, 2, self.columns // 8), 1, 1)), self.type)
        self.r2s, self.to_shared, self.from_values = r2s, r2s.partition_D(self.shared), r2s.retile(self.values)

    def chunks(self, sums: cute.Tensor) -> Any:
        """Accumulators of 64 rows as parts of D that are written at a time: (MMA,1,1,count)."""
        count = cute.size(sums) // cute.size(self.values)
        return cute.composition(sums, cute.make_layout(((2, 2, self.columns // 8), 1, 1, count)))

    @cute.jit
    def write(self, sums: Any, place: tuple[Any, ...]):
        """Writes one of the chunks to a place of D, (row, column, ...), counted by chunks."""
        to = self.own * self.buffers + self.buffer.index
        self.buffer.advance()
        self.values.store(sums.load().to(self.type))
        if self.leads:
            self.stores.producer_acquire()  # the buffer has been read
        sync_consumer(self.own)
        cute.copy(self.r2s, self.from_values, self.to_shared[None, None, None, to])
        cute.arch.fence_proxy("async.shared", space="cta")
        sync_consumer(self.own)
        if self.leads:
            with cute.arch.elect_one():
                if place[0] < cute.size(self.to, 1) and place[1] < cute.size(self.to, 2):
                    cute.copy(self.atom, self.source[None, to], self.to[(None, *place)])
                self.stores.producer_commit()

    @cute.jit
    def end(self):
        """Waits until shared memory has been read."""
        if self.leads:
            self.stores.producer_tail()
