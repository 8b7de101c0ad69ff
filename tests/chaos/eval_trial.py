"""A run of `unreel eval` as the driver starts it: what it asks stands in `job.json` of its folder."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from unreel.core.settings import read_environment_settings
from unreel.engine.committer import CommitPace
from unreel.engine.location import StorageLocation
from unreel.engine.progress import JobCallbacks
from unreel.engine.run import ALL_FAILURES
from unreel.engine.storage_access import ClipAccessSettings
from unreel.evaluation.recipe import validate_eval_recipe
from unreel.evaluation.run_job import EvalRun, evaluate

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
