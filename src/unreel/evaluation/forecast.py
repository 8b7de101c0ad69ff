"""Forecast of an evaluation: questions and cost, without sending anything."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from tempfile import TemporaryDirectory

from unreel.benchmarks.questions import PlannedQuestion
from unreel.benchmarks.statistics import BenchmarkSampleCounts
from unreel.core.answer import Usage
from unreel.core.chunks import iter_chunks
from unreel.core.clip import Clip
from unreel.engine.clip_facts import CLIPS, ClipProbeStage, StoredClipFacts, iter_clip_file_rows
from unreel.engine.location import StorageLocation, translate_store_errors
from unreel.engine.pending_questions import PendingQuestionFilter
from unreel.engine.progress import NO_CALLBACKS, JobCallbacks
from unreel.engine.run import PrefetchedIterator
from unreel.engine.run import run_pending_questions as run_stages
from unreel.engine.table import LanceTable
from unreel.evaluation.run_job import NOT_SENT, EvalRun, SkippedQuestionCounts, require_resumable
from unreel.evaluation.stored_recipe import StoredRecipe, find_run_recipe
from unreel.reviewers.endpoint.model_address import parse_model_address
from unreel.reviewers.endpoint.model_families import detect_model_family
from unreel.reviewers.endpoint.token_estimate import (
    CHARACTERS,
    estimate_request_tokens,
    get_image_token_rule,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostForecast:
    """Expected tokens and cost of the questions that would be sent; `None` means unknown."""

    n_frames: int
    input_tokens: int | None
    output_tokens: int
    input_usd: Decimal | None
    output_usd: Decimal | None
    input_by: str
    """Formula for the number of input tokens."""
    output_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionForecast:
    """Counts of clips and questions, and the expected cost."""

    reviewer: str
    n_clips: int
    n_questions: int
    n_answered: int
    n_due: int
    """Number of questions that would be sent."""
    failed: Mapping[str, int]
    """Number of questions that failed before and would not be sent again, by failure reason."""
    unreadable: Mapping[str, int]
    n_rejected: int
    drawn: BenchmarkSampleCounts | None
    bill: CostForecast | None
    """Expected tokens and cost; `None` for a reviewer that counts no tokens."""


def iter_question_states(
    run: EvalRun,
    facts: StoredClipFacts,
    reviewer: str,
    *,
    retry: Collection[str] = (),
    skipped: SkippedQuestionCounts | None = None,
) -> Iterator[tuple[PlannedQuestion[Clip], str | None]]:
    """Yield each question of the run with its failure reason: "" if answered, `None` if it is due.

    A question that failed for a reason in `retry` is due. `skipped` counts what is not a question.
    """
    pending = PendingQuestionFilter(run.answers, NOT_SENT.union(retry))

    def iter_questions() -> Iterator[PlannedQuestion[Clip]]:
        for planned in run.plan(facts):
            if isinstance(planned, PlannedQuestion):
                yield planned
            elif skipped is not None:
                skipped.leave(planned)

    for chunk in iter_chunks(iter_questions()):
        keys = [planned.question.key(reviewer) for planned in chunk]
        stored = run.answers.held(keys)
        for planned, key, is_due in zip(chunk, keys, pending.are_due(keys), strict=True):
            yield planned, None if is_due else stored[key] or ""


@translate_store_errors()
def forecast_eval(
    run: EvalRun,
    *,
    aside: LanceTable,
    retry_failed: Collection[str] = (),
    in_batches: bool = False,
    callbacks: JobCallbacks = NO_CALLBACKS,
) -> QuestionForecast:
    """Forecast `evaluate` without changing the run; new clips' facts go to `aside`, a temporary table."""
    callbacks.on_phase(f"reading {run.recipe.benchmark}")
    skipped, section, benchmark = SkippedQuestionCounts(), run.recipe.reviewer, run.benchmark()
    entries = PrefetchedIterator(run.entries(benchmark, skipped.reading))
    require_resumable(run, benchmark, skipped.reading)
    files = iter_clip_file_rows(benchmark, entries, run.access, cleaned=run.scope.shows_cleaned)
    run_stages(
        PendingQuestionFilter(run.clips).sift(files),
        [ClipProbeStage(run.access)],
        table=aside,
        on_due=lambda n: callbacks.on_due("clips", n),
        on_progress=lambda progress: callbacks.on_step("clips", progress),
    )
    callbacks.on_phase("counting the questions")
    family = None
    reviewer = section.model
    if section.is_served:
        reviewer = section.served_name
        family = detect_model_family(parse_model_address(section.model), section.family)
    elif not section.learns:
        settings = run.access.settings
        reviewer = section.opener(key_hosts=settings.key_hosts, seed=run.recipe.seed).name
    elif isinstance(stored_recipe := find_run_recipe(run.place), StoredRecipe):
        reviewer = stored_recipe.reviewer  # a fitted baseline has its name only after fitting

    clips: set[str] = set()
    n_by_reason: Counter[str | None] = Counter()
    n_frames = n_input = 0
    is_known = section.show == "frames"
    for planned, reason in iter_question_states(
        run, run.survey(aside), reviewer, retry=retry_failed, skipped=skipped
    ):
        clips.update(clip.id for clip in planned.clips)
        n_by_reason[reason] += 1
        if reason is None and family is not None:
            load = estimate_request_tokens(planned.question, planned.clips, family)
            n_frames += load.n_frames
            n_input += load.text_tokens + load.picture_tokens
            is_known &= planned.question.condition.audio == "off"
    n_due = n_by_reason[None]
    is_known |= n_due == 0
    bill = None
    if family is not None:
        n_output = n_due * section.max_tokens
        rule = get_image_token_rule(family).words
        formula = f"text: 1 for {CHARACTERS} characters; a picture: {rule}"
        price = section.price
        if price is not None and in_batches:
            price = price.halve()
        input_usage = Usage(input_tokens=n_input, output_tokens=0)
        output_usage = Usage(input_tokens=0, output_tokens=n_output)
        bill = CostForecast(
            n_frames=n_frames,
            input_tokens=n_input if is_known else None,
            output_tokens=n_output,
            input_usd=price.cost_usd(input_usage) if price and is_known else None,
            output_usd=price.cost_usd(output_usage) if price else None,
            input_by=formula if is_known else "no formula for whole clips or sound",
            output_by=f"at most {section.max_tokens:,} an answer",
        )
    return QuestionForecast(
        reviewer=reviewer,
        n_clips=len(clips),
        n_questions=n_by_reason.total(),
        n_answered=n_by_reason[""],
        n_due=n_due,
        failed={reason: n for reason, n in n_by_reason.items() if reason},
        unreadable=dict(skipped.unreadable),
        n_rejected=skipped.reading.n_rejected,
        drawn=skipped.reading.drawn,
        bill=bill,
    )


@contextmanager
def open_temporary_clip_table() -> Iterator[LanceTable]:
    """Open a temporary table for the properties of clips, which several forecasts can share."""
    with TemporaryDirectory(prefix="unreel-") as folder:
        yield LanceTable(StorageLocation(folder) / "clips.lance", CLIPS)
