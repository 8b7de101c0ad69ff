"""Forecast of an evaluation: its questions and its cost, without sending anything."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
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
from unreel.engine.table import LanceTable, StoredKeyState
from unreel.evaluation.review_stage import SkippedQuestionCounts
from unreel.evaluation.run_job import (
    NEVER_PUT,
    EvalRun,
    get_recipe_store,
    identify_current_benchmark,
)
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
    """Expected tokens and cost of the questions that a run would send; `None` means unknown."""

    n_frames: int
    input_tokens: int | None
    output_tokens: int
    input_usd: Decimal | None
    output_usd: Decimal | None
    input_by: str
    """Formula for the number of input tokens, or the stored answers from which it was estimated."""
    output_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalForecast:
    """Forecast of an evaluation: counts of clips and questions, and the expected cost."""

    reviewer: str
    n_clips: int
    n_questions: int
    n_answered: int
    n_due: int
    """Number of questions that the run would send."""
    failed: Mapping[str, int]
    """Number of questions that failed before and would not be sent again, by failure reason."""
    unreadable: Mapping[str, int]
    n_rejected: int
    drawn: BenchmarkSampleCounts | None
    bill: CostForecast | None
    """Expected tokens and cost; `None` for a reviewer that counts no tokens."""


@translate_store_errors()
def forecast_eval(
    run: EvalRun,
    *,
    aside: LanceTable,
    retry_failed: Collection[str] = (),
    callbacks: JobCallbacks = NO_CALLBACKS,
) -> EvalForecast:
    """Forecast `evaluate` without changing the run; new clips' facts go to `aside`, a temporary table."""
    callbacks.on_phase(f"reading {run.recipe.benchmark}")
    skipped, tally = SkippedQuestionCounts(), _ForecastCounts(run)
    retried = NEVER_PUT.union(retry_failed)
    survey = _survey_clips(run, skipped, aside, callbacks)
    callbacks.on_phase("counting the questions")
    questions, pending = (
        _iter_planned_questions(run, survey, skipped),
        PendingQuestionFilter(run.answers, retried),
    )
    for chunk in iter_chunks(questions):
        keys = [planned.question.key(tally.reviewer) for planned in chunk]
        stored = run.answers.held(keys)
        for planned, key, is_due in zip(chunk, keys, pending.are_due(keys), strict=True):
            tally.count(planned, None if is_due else stored[key])
    return EvalForecast(
        reviewer=tally.reviewer,
        n_clips=len(tally.clips),
        n_questions=tally.n_questions,
        n_answered=tally.n_answered,
        n_due=tally.n_due,
        failed=dict(tally.failed),
        unreadable=dict(skipped.unreadable),
        n_rejected=skipped.reading.n_rejected,
        drawn=skipped.reading.drawn,
        bill=tally.bill(),
    )


@contextmanager
def open_temporary_clip_table() -> Iterator[LanceTable]:
    """Open a temporary table for the properties of clips, which several forecasts can share."""
    with TemporaryDirectory(prefix="unreel-") as folder:
        yield LanceTable(StorageLocation(folder) / "clips.lance", CLIPS)


def _survey_clips(
    run: EvalRun, skipped: SkippedQuestionCounts, aside: LanceTable, callbacks: JobCallbacks
) -> StoredClipFacts:
    """Return the properties of the clips; those of new clips are read and stored in `aside`."""
    benchmark = run.benchmark()
    entries = PrefetchedIterator(run.entries(benchmark, skipped.reading))
    get_recipe_store(run).take_up(
        None, partial(identify_current_benchmark, run, benchmark, skipped.reading)
    )
    files = iter_clip_file_rows(benchmark, entries, run.access, cleaned=run.scope.shows_cleaned)
    run_stages(
        PendingQuestionFilter(run.clips).sift(files),
        [ClipProbeStage(run.access)],
        table=aside,
        on_due=lambda n: callbacks.on_due("clips", n),
        on_progress=lambda progress: callbacks.on_step("clips", progress),
    )
    return run.survey(benchmark, aside)


def _iter_planned_questions(
    run: EvalRun, survey: StoredClipFacts, skipped: SkippedQuestionCounts
) -> Iterator[PlannedQuestion[Clip]]:
    for planned in run.plan(survey):
        if isinstance(planned, PlannedQuestion):
            yield planned
        else:
            skipped.leave(planned)


@dataclass(slots=True)
class _TokenTotals:
    n: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class _ForecastCounts:
    """Counts of questions and expected tokens of a run, updated with each question."""

    def __init__(self, run: EvalRun) -> None:
        section = run.recipe.reviewer
        self.reviewer = _get_reviewer_name(run)
        self._section = section
        self._family = None
        if section.is_served:
            self._family = detect_model_family(parse_model_address(section.model), section.family)
        self._means = _sum_tokens_by_condition(run) if section.is_served else {}
        self.clips: set[str] = set()
        self.n_questions = self.n_answered = self.n_due = 0
        self.failed: Counter[str] = Counter()
        self._n_frames = self._input = self._output = self._n_measured = 0
        self._is_known = True

    def count(self, planned: PlannedQuestion[Clip], stored: StoredKeyState | None) -> None:
        self.n_questions += 1
        self.clips.update(clip.id for clip in planned.clips)
        if stored is None:
            self.n_due += 1
            self._add(planned)
        elif stored.reason is None:
            self.n_answered += 1
        else:
            self.failed[stored.reason] += 1

    def _add(self, planned: PlannedQuestion[Clip]) -> None:
        if self._family is None:
            return
        question = planned.question
        load = estimate_request_tokens(question, planned.clips, self._family)
        self._n_frames += load.n_frames
        mean = self._means.get(str(question.condition))
        if mean is not None:
            self._n_measured += 1
            self._input += mean.input_tokens // mean.n
            self._output += mean.output_tokens // mean.n
            return
        shows_frames = self._section.show == "frames" and question.condition.audio == "off"
        self._is_known &= shows_frames
        self._input += load.text_tokens + load.picture_tokens
        self._output += self._section.max_tokens

    def bill(self) -> CostForecast | None:
        if self._family is None:
            return None
        price, limit = self._section.price, f"at most {self._section.max_tokens:,} an answer"
        formula = f"text: 1 for {CHARACTERS} characters; a picture: {get_image_token_rule(self._family).words}"
        n = sum(mean.n for mean in self._means.values())
        measured = f"as the {n:,} answers that are there"
        if self._n_measured == self.n_due and self._n_measured:
            formula = limit = measured
        elif self._n_measured:
            formula, limit = f"{measured}, else {formula}", f"{measured}, else {limit}"
        if not self._is_known:
            formula = "no formula for whole clips or sound"
        n_input = self._input if self._is_known else None
        return CostForecast(
            n_frames=self._n_frames,
            input_tokens=n_input,
            output_tokens=self._output,
            input_usd=None
            if price is None or n_input is None
            else price.cost_usd(_build_input_usage(n_input)),
            output_usd=None if price is None else price.cost_usd(_build_output_usage(self._output)),
            input_by=formula,
            output_by=limit,
        )


def _build_input_usage(tokens: int) -> Usage:
    return Usage(input_tokens=tokens, output_tokens=0)


def _build_output_usage(tokens: int) -> Usage:
    return Usage(input_tokens=0, output_tokens=tokens)


def _get_reviewer_name(run: EvalRun) -> str:
    """Return the reviewer's name as answers store it; a fitted baseline has it only after fitting."""
    section = run.recipe.reviewer
    if section.is_served:
        return section.served_name
    if section.learns:
        stored = find_run_recipe(run.place)
        return stored.reviewer if isinstance(stored, StoredRecipe) else section.model
    return section.opener(key_hosts=run.access.settings.key_hosts, seed=run.recipe.seed).name


def _sum_tokens_by_condition(run: EvalRun) -> Mapping[str, _TokenTotals]:
    """Return, for each condition, the number of stored answers and the sums of their tokens."""
    means: defaultdict[str, _TokenTotals] = defaultdict(_TokenTotals)
    if run.answers.exists():
        columns = ("condition", "input_tokens", "output_tokens")
        where = "input_tokens IS NOT NULL AND failure_reason IS NULL"
        for row in run.answers.rows(columns, where=where):
            mean = means[row["condition"]]
            mean.n += 1
            mean.input_tokens += row["input_tokens"]
            mean.output_tokens += row["output_tokens"] or 0
    return means
