"""Number and size of a stage's workers on a cluster; independent of Ray, so that it can be tested.

A stage declares the resources of one worker and its number of rows in flight. The stage's
`InFlightLimitScope` determines how the workers and the rows in flight grow with the cluster.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from unreel.core.errors import InvalidSettingError
from unreel.engine.stage import InFlightLimitScope, WorkerResources

BLOCK_BYTES = 8 * 2**20
"""Size of the blocks into which a stage's output is cut; a larger row is a block of its own."""
BLOCKS_AT_WORK = 2
"""Number of blocks that a worker processes at once: one waits for its slowest row, the next uses the free permits."""
BLOCKS_PER_WORKER = 2 * BLOCKS_AT_WORK
"""Number of blocks that a worker holds, active or waiting; they are repeated if it dies."""
_SMALLEST_BLOCK = 4
_LARGEST_BLOCK = 32
_CONNECTIONS = 32
"""Number of connections per worker: with a share per processor, a pool that has not grown yet would leave most idle."""
_MIN_STORE_BYTES = 128 * 2**20
_ROUND = 100
"""Divisor to which CPU shares are rounded down: Ray counts in ten-thousandths, and the sum of the shares must fit."""


@dataclass(frozen=True, slots=True)
class ClusterCapacity:
    """CPUs and GPUs that a cluster has now or can grow to."""

    cpus: float
    gpus: float = 0.0

    @classmethod
    def read(cls, now: Mapping[str, float], later: Mapping[str, float] | None) -> Self:
        """Return the larger of Ray's present resources (`now`) and its autoscaler's maximum (`later`)."""
        resources = [now, later or {}]
        cpus, gpus = (max(r.get(name, 0.0) for r in resources) for name in ("CPU", "GPU"))
        return cls(cpus, gpus)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPoolSize:
    """Size of a stage's worker pool: `min_workers` to `max_workers` workers, each with `cpus` and `in_flight` rows."""

    max_workers: int
    in_flight: int
    cpus: float
    min_workers: int = 1


def plan_worker_pools(
    resources: Sequence[WorkerResources], capacity: ClusterCapacity, *, workers: int | None
) -> list[WorkerPoolSize]:
    """Return the pool size of each stage: `workers` if set, otherwise up to the cluster's capacity.

    Raise `InvalidSettingError` if the stages need more GPUs than the cluster has.
    """
    # The first workers of all stages must fit on the cluster together, or none ever starts.
    gpus = sum(stage.gpus for stage in resources)
    if gpus > capacity.gpus:
        raise InvalidSettingError(
            "engine",
            f"the workers need {gpus:g} GPUs and the Ray cluster offers {capacity.gpus:g}",
            "Join one that has them, or use `local`",
        )
    cpus = sum(stage.cpus for stage in resources) * (workers or 1)
    share = min(1.0, capacity.cpus / cpus) if cpus else 1.0
    return [
        _compute_pool_size(stage, capacity, workers=workers, share=share) for stage in resources
    ]


def _compute_pool_size(
    resources: WorkerResources, capacity: ClusterCapacity, *, workers: int | None, share: float
) -> WorkerPoolSize:
    cpus = resources.cpus if share == 1.0 else math.floor(resources.cpus * share * _ROUND) / _ROUND
    if resources.limit is InFlightLimitScope.ALONE:
        return WorkerPoolSize(max_workers=1, in_flight=resources.in_flight, cpus=cpus)
    limits = [math.floor(capacity.cpus / cpus)] if cpus else []
    limits += [math.floor(capacity.gpus / resources.gpus)] if resources.gpus else []
    size = workers or max(1, min(limits, default=1))
    in_flight = resources.in_flight
    if resources.limit is InFlightLimitScope.PROCESSORS:
        in_flight = max(1, min(in_flight, math.ceil(resources.cpus)))
    if resources.limit is InFlightLimitScope.SERVICE:
        size = min(size, in_flight if workers else math.ceil(in_flight / _CONNECTIONS))
        in_flight //= size
    return WorkerPoolSize(
        min_workers=size if workers else 1, max_workers=size, in_flight=in_flight, cpus=cpus
    )


def compute_rows_per_block(n_rows: int, pool_size: Sequence[WorkerPoolSize]) -> int:
    """Return the number of rows per Ray block, the unit that is repeated if its worker dies.

    A block has at most the rows that a worker holds in flight, since the worker waits for the
    slowest row, and leaves at least one block for every worker. If there are many rows it has at
    least four, since each block costs the driver a few milliseconds.
    """
    in_flight = max(_SMALLEST_BLOCK, *(pool_size.in_flight for pool_size in pool_size))
    even = math.ceil(n_rows / max(pool_size.max_workers for pool_size in pool_size))
    return max(1, min(_LARGEST_BLOCK, in_flight, even))


def compute_object_store_bytes(pool_size: Sequence[WorkerPoolSize]) -> int:
    """Return the memory limit of Ray's object store: enough to keep the workers of all stages busy.

    It is twice the blocks that the workers hold, since each produces one while its last one is
    consumed. By default Ray Data fills half of the store, which is recomputed if the node is lost.
    """
    blocks = sum(pool_size.max_workers for pool_size in pool_size) * BLOCKS_PER_WORKER
    return max(_MIN_STORE_BYTES, 2 * blocks * BLOCK_BYTES)
