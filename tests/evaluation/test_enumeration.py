"""A benchmark is gone through twice in an eval, once to survey and once to ask, and once to score."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from unreel.benchmarks.entry import Row
from unreel.benchmarks.export.exported_question import (
    BenchmarkExportRecipe,
    ExportedQuestion,
    format_truths_json,
)
from unreel.benchmarks.export.question_writer import iter_exported_questions
from unreel.benchmarks.loader import Benchmark
from unreel.benchmarks.questions import PlannedQuestion
from unreel.engine.progress import JobCallbacks
from unreel.evaluation.export import iter_question_rows
from unreel.evaluation.run_job import EvalRun, evaluate
from unreel.evaluation.scoring import score_run
from unreel.media.reader import MediaReader, run_trusted_task


class CountedRun(EvalRun):
    """A run whose benchmark counts how often it is gone through, wholly or in part."""

    passes = 0

    def benchmark(self) -> Benchmark:
        opened = super().benchmark()

        def read() -> Iterator[Row]:
            CountedRun.passes += 1
            return opened.read()

        return replace(opened, read=read)


@pytest.fixture
def counted(start) -> Callable[..., CountedRun]:
    def make(**settings: Any) -> CountedRun:
        run = start(**settings)
        CountedRun.passes = 0
        return CountedRun(**{part.name: getattr(run, part.name) for part in fields(run)})

    return make


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"protocol": "preference"},
        {"model": "metadata"},
        {"condition": [{}, {"audio": "on"}]},
        {"limit": 3},
    ],
    ids=["clips", "pairs", "a floor that learns", "two conditions", "the first clips"],
)
def test_an_eval_goes_through_its_benchmark_twice_and_a_score_once(
    counted, settings: dict[str, Any]
) -> None:
    run = counted(**settings)
    told: dict[str, int] = {}
    outcome = evaluate(run, callbacks=JobCallbacks(on_due=told.__setitem__))
    assert CountedRun.passes == 2
    answers = outcome.answers
    assert told == {"clips": outcome.clips.done, "answers": answers.done + answers.failed}
    score_run(run)
    assert CountedRun.passes == 3
    assert len(list(iter_question_rows(run))) == answers.done + answers.failed
    assert CountedRun.passes == 4


@pytest.mark.parametrize("protocol", ["reality", "preference"])
def test_an_export_and_a_run_ask_the_same_questions_in_the_same_order(
    counted, clips: Path, protocol: str
) -> None:
    run = counted(protocol=protocol, seed=7)
    evaluate(run)
    asked = [planned for planned in run.plan() if isinstance(planned, PlannedQuestion)]
    recipe = BenchmarkExportRecipe(name="same", protocol=protocol, seed=7)
    reader = MediaReader(run_trusted_task)
    items = [
        i
        for i in iter_exported_questions(run.benchmark(), recipe, reader=reader)
        if isinstance(i, ExportedQuestion)
    ]
    assert [(item.id, item.subject, item.truth) for item in items] == [
        (planned.name, planned.question.subject, format_truths_json(protocol, planned.truths))
        for planned in asked
    ]
