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
    assert sum(crew.least * crew.cpus for crew in manned) <= offer.cpus + 1e-6
    assert all(crew.most >= crew.least >= 1 for crew in manned)


@given(stage=SHAPES, offer=OFFERS)
def test_no_stage_alone_asks_for_more_than_there_is(stage, offer) -> None:
    (crew,) = plan_worker_pools([stage], offer, workers=None)
    assert crew.most * crew.cpus <= max(offer.cpus, crew.cpus) + 1e-6
    assert crew.most == 1 or crew.most * stage.gpus <= offer.gpus


@given(stage=SHAPES, offer=OFFERS, workers=st.none() | st.integers(1, 64))
def test_a_service_never_sees_more_rows_at_once_than_it_allows(stage, offer, workers) -> None:
    (crew,) = plan_worker_pools([stage], offer, workers=workers)
    assert crew.in_flight >= 1
    if stage.limit in {InFlightLimitScope.SERVICE, InFlightLimitScope.ALONE}:
        assert crew.most * crew.in_flight <= stage.in_flight


def test_the_first_worker_alone_keeps_what_a_small_service_allows_busy() -> None:
    few, many = (WorkerResources(in_flight=n, limit=InFlightLimitScope.SERVICE) for n in (8, 256))
    (crew,) = plan_worker_pools([few], ClusterCapacity(64), workers=None)
    assert (crew.most, crew.in_flight) == (1, 8)
    (crew,) = plan_worker_pools([many], ClusterCapacity(64), workers=None)
    assert (crew.most, crew.in_flight) == (8, 32)


def test_a_hundred_nodes_are_used_without_being_told() -> None:
    scan = WorkerResources(cpus=1, in_flight=64, limit=InFlightLimitScope.PROCESSORS)
    weights = WorkerResources(cpus=4, gpus=1, in_flight=16)
    decode, look = plan_worker_pools([scan, weights], ClusterCapacity(6_400, 800), workers=None)
    assert (decode.most, decode.in_flight) == (6_400, 1)
    assert (look.most, look.in_flight) == (800, 16)


def test_who_keeps_an_account_works_alone_whatever_was_asked_for() -> None:
    metered = WorkerResources(in_flight=16, limit=InFlightLimitScope.ALONE)
    for workers in (None, 7):
        (crew,) = plan_worker_pools([metered], ClusterCapacity(64), workers=workers)
        assert (crew.least, crew.most, crew.in_flight) == (1, 1, 16)


def test_a_number_of_workers_that_somebody_chose_is_taken_as_it_is() -> None:
    (crew,) = plan_worker_pools([WorkerResources(in_flight=5)], ClusterCapacity(2), workers=3)
    assert (crew.least, crew.most, crew.in_flight) == (3, 3, 5)
    assert 3 * crew.cpus <= 2


def test_a_stage_for_gpus_does_not_wait_for_ever_where_there_are_none() -> None:
    with pytest.raises(InvalidSettingError, match="need 1 GPUs and the Ray cluster offers 0"):
        plan_worker_pools([WorkerResources(gpus=1)], ClusterCapacity(8), workers=None)


def test_stages_that_need_a_gpu_each_do_not_wait_for_ever_for_the_only_one() -> None:
    with pytest.raises(InvalidSettingError, match="need 2 GPUs and the Ray cluster offers 1"):
        plan_worker_pools(
            [WorkerResources(gpus=1), WorkerResources(gpus=1)], ClusterCapacity(8, 1), workers=None
        )


def test_a_chosen_number_of_workers_shares_the_processors_of_a_machine() -> None:
    scan = WorkerResources(cpus=1, in_flight=64, limit=InFlightLimitScope.PROCESSORS)
    (crew,) = plan_worker_pools([scan], ClusterCapacity(64), workers=4)
    assert (crew.least, crew.most, crew.in_flight) == (4, 4, 1)


def test_what_an_autoscaler_may_add_counts_as_offered() -> None:
    assert ClusterCapacity.read({"CPU": 4.0}, {"CPU": 64.0, "GPU": 8.0}) == ClusterCapacity(
        64.0, 8.0
    )
    assert ClusterCapacity.read({"CPU": 4.0, "GPU": 1.0}, None) == ClusterCapacity(4.0, 1.0)


@given(n_rows=st.integers(1, 100_000), most=st.integers(1, 10_000), in_flight=st.integers(1, 300))
def test_every_worker_has_a_block_where_there_are_rows_for_all(n_rows, most, in_flight) -> None:
    size = compute_rows_per_block(n_rows, [WorkerPoolSize(most=most, in_flight=in_flight, cpus=1)])
    assert 1 <= size <= 32
    assert size == 1 or -(-n_rows // size) >= min(most, n_rows) / 2


def test_a_block_is_as_large_as_what_a_worker_holds_at_once() -> None:
    sizes = [
        compute_rows_per_block(100_000, [WorkerPoolSize(most=8, in_flight=n, cpus=1)])
        for n in (1, 8, 300)
    ]
    assert sizes == [4, 8, 32]


def test_the_store_holds_what_keeps_workers_busy_and_no_more() -> None:
    few, many = ([WorkerPoolSize(most=n, in_flight=1, cpus=1)] for n in (1, 640))
    assert compute_object_store_bytes(few) == 128 * 2**20
    assert compute_object_store_bytes(many) == 640 * 8 * BLOCK_BYTES
