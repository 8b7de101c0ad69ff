"""How many workers a stage gets: what a cluster offers, and never more than somebody else allows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.errors import InvalidSettingError
from unreel.engine.stage import InFlightLimitScope, WorkerResources
from unreel.engine.worker_pool_size import (
    BLOCK_BYTES,
    ClusterCapacity,
    WorkerPoolSize,
    compute_object_store_bytes,
    compute_rows_per_block,
    plan_worker_pools,
)

SHAPES = st.builds(
    WorkerResources,
    cpus=st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 8.0]),
    gpus=st.sampled_from([0.0, 0.5, 1.0]),
    in_flight=st.integers(1, 300),
    limit=st.sampled_from(InFlightLimitScope),
)
OFFERS = st.builds(ClusterCapacity, st.floats(1, 4096), st.floats(5, 512))


@given(stages=st.lists(SHAPES, min_size=1, max_size=5), offer=OFFERS)
def test_the_first_worker_of_every_stage_finds_room_beside_all_others(stages, offer) -> None:
    manned = plan_worker_pools(stages, offer, workers=None)
    assert sum(pool_size.min_workers * pool_size.cpus for pool_size in manned) <= offer.cpus + 1e-6
    assert all(pool_size.max_workers >= pool_size.min_workers >= 1 for pool_size in manned)


@given(stage=SHAPES, offer=OFFERS, workers=st.none() | st.integers(1, 64))
def test_a_service_never_sees_more_rows_at_once_than_it_allows(stage, offer, workers) -> None:
    (pool_size,) = plan_worker_pools([stage], offer, workers=workers)
    assert pool_size.in_flight >= 1
    if stage.limit in {InFlightLimitScope.SERVICE, InFlightLimitScope.ALONE}:
        assert pool_size.max_workers * pool_size.in_flight <= stage.in_flight


def test_who_keeps_an_account_works_alone_whatever_was_asked_for() -> None:
    metered = WorkerResources(in_flight=16, limit=InFlightLimitScope.ALONE)
    for workers in (None, 7):
        (pool_size,) = plan_worker_pools([metered], ClusterCapacity(64), workers=workers)
        assert (pool_size.min_workers, pool_size.max_workers, pool_size.in_flight) == (1, 1, 16)


def test_stages_that_need_a_gpu_each_do_not_wait_for_ever_for_the_only_one() -> None:
    with pytest.raises(InvalidSettingError, match="need 2 GPUs and the Ray cluster offers 1"):
        plan_worker_pools(
            [WorkerResources(gpus=1), WorkerResources(gpus=1)], ClusterCapacity(8, 1), workers=None
        )


def test_a_block_is_as_large_as_what_a_worker_holds_at_once() -> None:
    sizes = [
        compute_rows_per_block(100_000, [WorkerPoolSize(max_workers=8, in_flight=n, cpus=1)])
        for n in (1, 8, 300)
    ]
    assert sizes == [4, 8, 32]


def test_the_store_holds_what_keeps_workers_busy_and_no_more() -> None:
    few, many = ([WorkerPoolSize(max_workers=n, in_flight=1, cpus=1)] for n in (1, 640))
    assert compute_object_store_bytes(few) == 128 * 2**20
    assert compute_object_store_bytes(many) == 640 * 8 * BLOCK_BYTES
