"""Runs stages in Ray Data actors, on this machine or on the cluster that `RAY_ADDRESS` names.

Rows travel as opaque bytes, so a column of nulls or of mixed types means the same here as in `local`.
Ray hands the block of a dead worker to another one for ever; the ledger, an actor beside the driver,
breaks that circle. A block is what a dead worker's successor repeats, so blocks are kept small.
"""

import asyncio
import itertools
import pickle
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa
import ray
import ray.data
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from unreel.engine.ledger import Ledger, Order
from unreel.engine.own_ray import joined_ray
from unreel.engine.runner import Sink, ledger_item, quarantined
from unreel.engine.stage import Row, Stage, has_failed, stored
from unreel.engine.station import Station

WINDOW_ROWS: Final = 100_000
"""Questions given to Ray at a time: the driver keeps no more than their addresses."""

_ROW: Final = "row"
_LARGEST_BLOCK: Final = 32
_BLOCKS_PER_WORKER: Final = 2
"""While one block waits for its slowest row, the next one fills the permits that fell free."""


class RayRunner:
    """The runner for a cluster: `workers` actors for each stage, the same rows as `LocalRunner`.

    Uses the Ray that is up in this process; else it starts one, or joins the one at `RAY_ADDRESS`, and
    leaves it at the end of the run, or of the `with` block that several runs share.
    """

    def __init__(self, *, workers: int = 1) -> None:
        self._workers = workers
        self._stays = False
        self._ours = ExitStack()

    def __enter__(self) -> Self:
        self._stays = True
        return self

    def __exit__(self, *_error: object) -> None:
        self._stays = False
        self._leave()

    def run(
        self, rows: Iterable[Row], stages: Sequence[Stage], *, sink: Sink, ledger: Path
    ) -> None:
        """Return when every row is in the sink; an interrupt leaves finished rows there."""
        if not ray.is_initialized():
            self._ours.enter_context(joined_ray())
        try:
            book = _start_ledger(ledger)
            try:
                source = iter(rows)
                while window := list(itertools.islice(source, WINDOW_ROWS)):
                    for row in self._stream(window, stages, book):
                        sink.add(row)
            finally:
                ray.get(book.close.remote())
                ray.kill(book)
        finally:
            self._leave()

    def _leave(self) -> None:
        if not self._stays:
            self._ours.close()

    def _stream(self, window: list[Row], stages: Sequence[Stage], book: Any) -> Iterator[Row]:
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        size = min(_LARGEST_BLOCK, max(stage.resources.in_flight for stage in stages))
        # From items, because from tables Ray measures each one in a task, in processes of its own.
        items = [{_ROW: pickle.dumps(row)} for row in window]
        data: Any = ray.data.from_items(items, override_num_blocks=-(-len(items) // size))
        for number, stage in enumerate(stages):
            data = data.map_batches(
                _Worker,
                fn_constructor_args=(stage, number, book),
                batch_size=None,
                batch_format="pyarrow",
                num_cpus=stage.resources.cpus,
                num_gpus=stage.resources.gpus,
                compute=ray.data.ActorPoolStrategy(
                    size=self._workers,
                    max_tasks_in_flight_per_actor=2 * _BLOCKS_PER_WORKER,
                    max_concurrent_calls_per_actor=_BLOCKS_PER_WORKER,
                    enable_true_multi_threading=True,
                ),
            )
        for batch in data.iter_batches(batch_size=None, batch_format="pyarrow"):
            yield from map(stored, _unpack(batch))


class _LedgerKeeper:
    """The ledger as an actor: it answers workers wherever they are, and outlives them."""

    def __init__(self, path: str) -> None:
        self._ledger = Ledger(Path(path))

    def begin(self, items: list[str]) -> list[tuple[str, int]]:
        """How each item is to be run, and its deaths; those that may run are marked as started."""
        orders = [(self._ledger.order(item), self._ledger.deaths(item)) for item in items]
        for item, (order, _) in zip(items, orders, strict=True):
            if order is Order.RUN:
                self._ledger.begin(item)
        return [(order.value, deaths) for order, deaths in orders]

    def begin_alone(self, item: str) -> None:
        self._ledger.begin(item, alone=True)

    def finish(self, items: list[str]) -> None:
        for item in items:
            self._ledger.finish(item)

    def close(self) -> None:
        self._ledger.withdraw()
        self._ledger.close()


class _Worker:
    """One stage in one actor: an event loop of its own, shared by the blocks it holds."""

    def __init__(self, stage: Stage, number: int, book: Any) -> None:
        self._number, self._book = number, book
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="stage", daemon=True).start()
        self._station: Station = self._wait(self._open(stage))

    def __call__(self, block: Any) -> Any:
        return _pack(self._wait(self._serve(_unpack(block))))

    def _wait(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _open(self, stage: Stage) -> Station:
        return await Station(stage).__aenter__()

    async def _serve(self, rows: list[Row]) -> list[Row]:
        done = [row for row in rows if has_failed(row)]
        live = [row for row in rows if not has_failed(row)]
        orders = await self._book.begin.remote([self._item(row) for row in live])
        company: list[Row] = []
        suspects: list[Row] = []
        for row, (order, deaths) in zip(live, orders, strict=True):
            match Order(order):
                case Order.RUN:
                    company.append(row)
                case Order.ALONE:
                    suspects.append(row)
                case Order.QUARANTINE:
                    done.append(quarantined(row, deaths))
        done += await asyncio.gather(*map(self._apply, company))
        self._book.finish.remote([self._item(row) for row in company])
        for row in suspects:
            async with self._station.alone():
                await self._book.begin_alone.remote(self._item(row))
                done.append(await self._station.apply(row))
                await self._book.finish.remote([self._item(row)])
        return done

    async def _apply(self, row: Row) -> Row:
        await self._station.enter()
        try:
            return await self._station.apply(row)
        finally:
            self._station.leave()

    def _item(self, row: Row) -> str:
        return f"{ledger_item(row)}/{self._number}"


def _start_ledger(path: Path) -> Any:
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    options = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": -1}
    actor = ray.remote(_LedgerKeeper).options(scheduling_strategy=here, **options)
    return actor.remote(str(path.absolute()))


def _pack(rows: list[Row]) -> Any:
    return pa.table({_ROW: pa.array([pickle.dumps(row) for row in rows], pa.large_binary())})


def _unpack(block: Any) -> list[Row]:
    # Rows that this run packed itself, in its own object store.
    return [pickle.loads(packed.as_py()) for packed in block.column(_ROW)]  # noqa: S301
