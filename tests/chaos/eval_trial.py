"""A run of `unreel eval` as the driver starts it: what it asks stands in `job.json` of its folder."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from unreel.benchmarks.questions import PlannedQuestion
from unreel.core.settings import read_environment_settings
from unreel.engine.clip_facts import ClipProbeStage, iter_clip_file_rows
from unreel.engine.committer import CommitPace
from unreel.engine.location import StorageLocation
from unreel.engine.progress import JobCallbacks
from unreel.engine.run import ALL_FAILURES
from unreel.engine.run import run_pending_questions as run_stages
from unreel.engine.stage import Row, drop_scratch_columns
from unreel.engine.stage_worker import StageWorker
from unreel.engine.storage_access import ClipAccessSettings
from unreel.evaluation.baseline_fitting import build_reviewer_factory
from unreel.evaluation.recipe import validate_eval_recipe
from unreel.evaluation.review_stage import ReviewStage, build_unanswered_row
from unreel.evaluation.run_job import EvalRun, evaluate
from unreel.evaluation.table_schemas import ANSWERS

IN_FLIGHT = 8
"""Questions with the server at once."""


def run_in(folder: Path) -> EvalRun:
    """The run that `job.json` describes: a manifest, a model, how clips are opened, where tables go."""
    job = json.loads((folder / "job.json").read_text())
    recipe = {
        "benchmark": job["benchmark"],
        "model": job["model"],
        "protocol": "reality",
        "condition": [{"sampling": "uniform-4"}],
        "max_connections": IN_FLIGHT,
    }
    return EvalRun(
        place=StorageLocation(job["uri"], job["options"]),
        recipe=validate_eval_recipe(recipe),
        access=ClipAccessSettings(settings=read_environment_settings(), trusted=job["trusted"]),
        ledgers=folder,
    )


def evaluate_in(
    folder: Path, *, engine: str, pace: CommitPace, retry: bool, observe: Callable[[str, int], None]
) -> Any:
    """The real thing: survey, questions, answers."""
    return evaluate(
        run_in(folder),
        engine=engine,
        retry_failed=ALL_FAILURES if retry else (),
        pace=pace,
        callbacks=JobCallbacks(observe=observe),
    )


def append_plainly(folder: Path, *, pace_rows: int, observe: Callable[[str, int], None]) -> None:
    """The control: surveys well, then asks everything and appends, whatever is there."""
    run = run_in(folder)
    benchmark = run.benchmark()
    clips = iter_clip_file_rows(benchmark, run.entries(benchmark), run.access)
    run_stages(clips, [ClipProbeStage(run.access)], table=run.clips)
    opener = build_reviewer_factory(run.recipe, access=run.access, learn_from=lambda: iter(()))
    rows = [
        build_unanswered_row(one, opener.name)
        for one in run.plan()
        if isinstance(one, PlannedQuestion)
    ]
    stage = ReviewStage(opener, run.access, in_flight=IN_FLIGHT)
    place = folder / "plain.lance"

    async def ask() -> None:
        async with StageWorker(stage) as worker:
            for start in range(0, len(rows), pace_rows):
                done = await asyncio.gather(*map(worker.apply, rows[start : start + pace_rows]))
                append(place, [drop_scratch_columns(row) for row in done], observe)

    asyncio.run(ask())


def append(place: Path, rows: list[Row], observe: Callable[[str, int], None]) -> None:
    """Append and know nothing of what was there."""
    table = pa.Table.from_batches([ANSWERS.batch(rows)])
    observe("written", len(rows))
    lance.write_dataset(table, str(place), mode="append" if place.exists() else "create")
    observe("committed", len(rows))
