"""Run stages in Ray Data actors, on this machine or on the cluster at `RAY_ADDRESS`.

Rows are sent as opaque bytes, so that a column of nulls or of mixed types has the same meaning
as with the `local` engine.

Ray gives the block of a crashed worker to another worker without limit. The ledger, an actor on
the driver's node, stops this loop: it records the rows that each worker started and did not
finish. A suspected row passes the remaining stages unchanged. When its window is finished and
the workers have ended, the driver runs the row from that stage on in a separate actor (see
`crash_suspects`).

After a crash the next worker repeats the whole block, so blocks are small in rows and bytes.
The loss of a node counts as a crash of all its workers and loses the blocks in its object
store. `worker_pool_size` sets the number of workers.
"""

import asyncio
import pickle
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import ray
import ray.data
import ray.exceptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from unreel.engine.crash_suspects import CrashSuspect, CrashSuspectQueue, WorkerCrash
from unreel.engine.private_ray import connect_to_ray
from unreel.engine.stage import (
    Row,
    RowSink,
    Stage,
    drop_scratch_columns,
    format_start_log_item,
    is_failed_row,
)
from unreel.engine.stage_worker import StageChain, StageWorker
from unreel.engine.start_log import ItemStartLog
from unreel.engine.table_questions import DueTableQuestions, TableQuestionLoader
from unreel.engine.worker_pool_size import (
    BLOCK_BYTES,
    BLOCKS_AT_WORK,
    BLOCKS_PER_WORKER,
    ClusterCapacity,
    WorkerPoolSize,
    compute_object_store_bytes,
    compute_rows_per_block,
    plan_worker_pools,
)

WINDOW_ROWS = 100_000
WINDOW_BYTES = 64 * 2**20
"""Maximum size of the questions that Ray gets at a time, besides `WINDOW_ROWS`: the driver's node stores them."""

# Internal module of Ray without types, where Ray Data reads the maximum of an autoscaler.
_STATE: Any = import_module("ray._private.state")
_ROW = "row"
_SUSPECT_AT = "_suspect_at"
"""Scratch column of a suspect row: number of the stage from which it continues in isolation."""


class RayRunner:
    """Runner on a Ray cluster; it produces the same rows as `LocalRunner`.

    Each stage has `workers` actors; by default one, and more while rows wait and the cluster has
    capacity. The runner uses an initialised Ray of this process. Otherwise it starts one, or joins
    that at `RAY_ADDRESS`, and disconnects after the run or the `with` block of several runs.
    """

    def __init__(self, *, workers: int | None = None) -> None:
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
        self, rows: Iterable[Row], stages: Sequence[Stage], *, sink: RowSink, ledger: Path
    ) -> None:
        """Run every row through the stages on Ray, and pass finished rows to `sink`.

        After an interrupt the sink has all rows that were finished.
        """
        if not ray.is_initialized():
            self._ours.enter_context(connect_to_ray())
        try:
            this_node = NodeAffinitySchedulingStrategy(
                ray.get_runtime_context().get_node_id(), soft=False
            )
            options = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": -1}
            actor: Any = ray.remote(_StartLogActor).options(
                scheduling_strategy=this_node, **options
            )
            log_actor = actor.remote(str(ledger.absolute()))
            try:
                fetch = rows.fetch() if isinstance(rows, DueTableQuestions) else None
                for window in _iter_row_windows(
                    rows.addresses if isinstance(rows, DueTableQuestions) else rows
                ):
                    suspects = CrashSuspectQueue()
                    later = _STATE.state.get_max_resources_from_cluster_config()
                    offer = ClusterCapacity.read(_STATE.cluster_resources(), later)
                    manned = plan_worker_pools(
                        [stage.resources for stage in stages], offer, workers=self._workers
                    )
                    team = [
                        _StagePool(stage, pool_size)
                        for stage, pool_size in zip(stages, manned, strict=True)
                    ]
                    for row in _iter_finished_rows(window, team, log_actor, fetch):
                        if _SUSPECT_AT in row:
                            suspects.add(row)
                        else:
                            sink.add(drop_scratch_columns(row))
                    for row in _iter_isolated_retries(suspects, team, log_actor):
                        sink.add(drop_scratch_columns(row))
            finally:
                ray.get(log_actor.close.remote())
                ray.kill(log_actor)
        finally:
            self._leave()

    def _leave(self) -> None:
        if not self._stays:
            self._ours.close()


@dataclass(frozen=True, slots=True)
class _StagePool:
    stage: Stage
    pool_size: WorkerPoolSize


def _iter_row_windows(rows: Iterable[Row]) -> Iterator[list[bytes]]:
    window: list[bytes] = []
    n_bytes = 0
    for row in rows:
        window.append(pickle.dumps(row))
        n_bytes += len(window[-1])
        if len(window) == WINDOW_ROWS or n_bytes > WINDOW_BYTES:
            yield window
            window, n_bytes = [], 0
    if window:
        yield window


def _iter_finished_rows(
    window: list[bytes],
    pool: Sequence[_StagePool],
    log_actor: Any,
    loader: TableQuestionLoader | None,
) -> Iterator[Row]:
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.target_max_block_size = BLOCK_BYTES
    manned = [post.pool_size for post in pool]
    context.execution_options.resource_limits = ray.data.ExecutionResources.for_limits(
        object_store_memory=compute_object_store_bytes(manned)
    )
    n_blocks = -(-len(window) // compute_rows_per_block(len(window), manned))
    # `from_items`, because tables are measured by Ray in a task each, in other processes.
    items = [{_ROW: row} for row in window]
    data: Any = ray.data.from_items(items, override_num_blocks=n_blocks)
    for number, post in enumerate(pool):
        data = data.map_batches(
            _StageActor,
            fn_constructor_args=(post, number, log_actor, None if number else loader),
            batch_size=None,
            batch_format="pyarrow",
            num_cpus=post.pool_size.cpus,
            num_gpus=post.stage.resources.gpus,
            compute=ray.data.ActorPoolStrategy(
                min_size=post.pool_size.min_workers,
                max_size=max(post.pool_size.min_workers, min(post.pool_size.max_workers, n_blocks)),
                max_tasks_in_flight_per_actor=BLOCKS_PER_WORKER,
                max_concurrent_calls_per_actor=BLOCKS_AT_WORK,
                enable_true_multi_threading=True,
            ),
        )
    for batch in data.iter_batches(batch_size=None, batch_format="pyarrow"):
        yield from _unpickle_rows(batch)


def _iter_isolated_retries(
    suspects: CrashSuspectQueue, pool: Sequence[_StagePool], log_actor: Any
) -> Iterator[Row]:
    """Run each suspect row in isolation, as many concurrently as a stage has workers; yield results."""
    at_once = min(post.pool_size.max_workers for post in pool)
    at_work: dict[Any, _IsolatedActor] = {}
    try:
        while suspects or at_work:
            while suspects and len(at_work) < at_once:
                alone = _IsolatedActor(suspects.take(), pool)
                at_work[alone.done] = alone
            (done,), _ = ray.wait(list(at_work))
            alone = at_work.pop(done)
            outcome = alone.outcome()
            row = suspects.judge(alone.suspect, outcome)
            if row is outcome:
                log_actor.finish.remote([_format_stage_log_item(alone.suspect[0], alone.number)])
            if row is not None:
                yield row
    finally:
        for alone in at_work.values():
            alone.end()


class _IsolatedActor:
    def __init__(self, suspect: CrashSuspect, pool: Sequence[_StagePool]) -> None:
        self.suspect = suspect
        self.number: int = suspect[0][_SUSPECT_AT]
        posts = pool[self.number :]
        actor: Any = ray.remote(StageChain).options(
            num_cpus=max(post.pool_size.cpus for post in posts),
            num_gpus=max(post.stage.resources.gpus for post in posts),
            max_restarts=0,
            max_task_retries=0,
        )
        self._actor = actor.remote([post.stage for post in posts])
        self._ready = self._actor.ready.remote()
        self.done = self._actor.take.remote(suspect[0])

    def outcome(self) -> Row | WorkerCrash:
        """Return the finished row, or the crash of its worker; call it when `done` is ready."""
        try:
            row: Row = ray.get(self.done)
        except ray.exceptions.RayTaskError:
            raise  # The worker is alive: the error is a bug, or an error of a stage's `setup`.
        except ray.exceptions.RayError as error:
            began = True
            try:
                ray.get(self._ready)
            except ray.exceptions.RayError:
                began = False
            line = str(error).strip().partition("\n")[0]
            return WorkerCrash(f"{type(error).__name__}: {line}", began=began)
        else:
            return row
        finally:
            self.end()

    def end(self) -> None:
        ray.kill(self._actor)


class _StartLogActor:
    """Ray actor with the log of started rows: all workers reach it, and it outlives them."""

    def __init__(self, path: str) -> None:
        self._ledger = ItemStartLog(Path(path))

    def suspects(self, items: list[str]) -> list[bool]:
        """Return for each of `items` whether it must run in isolation, because it may crash its worker."""
        return [self._ledger.is_suspect(item) for item in items]

    def begin(self, items: list[str]) -> None:
        for item in items:
            self._ledger.begin(item)

    def finish(self, items: list[str]) -> None:
        for item in items:
            self._ledger.finish(item)

    def close(self) -> None:
        self._ledger.withdraw()
        self._ledger.close()


class _StageActor:
    """Ray actor that runs one stage, with one event loop for all its blocks."""

    def __init__(
        self, pool: _StagePool, number: int, log_actor: Any, loader: TableQuestionLoader | None
    ) -> None:
        self._number, self._log_actor, self._fetch = number, log_actor, loader
        self._pen = _StartLogWriter(log_actor)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="stage", daemon=True).start()
        self._worker: StageWorker = self._wait(self._open(pool))

    def __call__(self, block: Any) -> Any:
        rows = _unpickle_rows(block)
        if self._fetch is not None:
            rows = self._fetch(rows)
        pickled = [pickle.dumps(row) for row in self._wait(self._serve(rows))]
        return pa.table({_ROW: pa.array(pickled, pa.large_binary())})

    def _wait(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _open(self, pool: _StagePool) -> StageWorker:
        return await StageWorker(pool.stage, in_flight=pool.pool_size.in_flight).__aenter__()

    async def _serve(self, rows: list[Row]) -> list[Row]:
        done = [row for row in rows if is_failed_row(row) or _SUSPECT_AT in row]
        live = [row for row in rows if not (is_failed_row(row) or _SUSPECT_AT in row)]
        suspected = await self._log_actor.suspects.remote(
            [_format_stage_log_item(row, self._number) for row in live]
        )
        company: list[Row] = []
        for row, is_suspect in zip(live, suspected, strict=True):
            if is_suspect:
                done.append(row | {_SUSPECT_AT: self._number})
            else:
                company.append(row)
        return done + await asyncio.gather(*map(self._apply, company))

    async def _apply(self, row: Row) -> Row:
        item = _format_stage_log_item(row, self._number)
        await self._worker.enter()
        try:
            await self._pen.begin(item)
            done = await self._worker.apply(row)
            self._pen.finish(item)
            return done
        finally:
            self._worker.leave()


class _StartLogWriter:
    """Batches of started and finished rows, sent to the Ray actor that writes the start log."""

    def __init__(self, log_actor: Any) -> None:
        self._log_actor = log_actor
        self._begun: list[str] = []
        self._finished: list[str] = []
        self._turn = asyncio.Lock()

    async def begin(self, item: str) -> None:
        """Record the start of `item`; return after the log has it."""
        self._begun.append(item)
        async with self._turn:
            if item in self._begun:  # otherwise an earlier caller has already sent it
                items, self._begun = self._begun, []
                await self._log_actor.begin.remote(items)

    def finish(self, item: str) -> None:
        """Send the finish of `item` at the end of this event loop iteration, without waiting."""
        if not self._finished:
            asyncio.get_running_loop().call_soon(self._send_finished)
        self._finished.append(item)

    def _send_finished(self) -> None:
        items, self._finished = self._finished, []
        self._log_actor.finish.remote(items)


def _unpickle_rows(block: Any) -> list[Row]:
    # Rows that this run pickled itself, in its own object store.
    return [pickle.loads(packed.as_py()) for packed in block.column(_ROW)]  # noqa: S301


def _format_stage_log_item(row: Row, number: int) -> str:
    return f"{format_start_log_item(row)}/{number}"
