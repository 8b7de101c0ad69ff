"""Evaluation run: a folder or store prefix with its recipe, clips and answers; its execution."""

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unreel.asking.answer_table import ANSWERS
from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.loader import Benchmark, open_benchmark
from unreel.benchmarks.questions import (
    PlannedQuestion,
    QuestionScope,
    UnreadableClip,
    find_entries_without_truth,
    plan_questions,
    require_some_question,
)
from unreel.benchmarks.statistics import (
    BenchmarkIdentity,
    BenchmarkSampleCounts,
    BenchmarkStats,
    build_no_question_error,
    compute_benchmark_identity,
    sample_balanced_entries,
)
from unreel.core.clip import Clip, Origin
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure, FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.core.question import Condition, Instrument
from unreel.engine.clip_facts import (
    CLIPS,
    ClipProbeStage,
    StoredClipFacts,
    iter_clip_file_rows,
    reuse_stored_clip_facts,
)
from unreel.engine.committer import CommitPace
from unreel.engine.location import StorageLocation, require_conditional_puts, translate_store_errors
from unreel.engine.progress import NO_CALLBACKS, JobCallbacks
from unreel.engine.run import JobRunSummary, open_shared_runner
from unreel.engine.run import run_pending_questions as run_stages
from unreel.engine.stage import Row, Stage
from unreel.engine.storage_access import ClipAccessSettings, provide_local_clip_file
from unreel.engine.table import LanceTable
from unreel.engine.writer_lock import build_writer_lock
from unreel.evaluation.judge import RULINGS
from unreel.evaluation.recipe import EvalRecipe
from unreel.evaluation.review_stage import (
    CountedEntryStream,
    ReviewStage,
    SkippedQuestionCounts,
    add_row_costs,
    require_watermark_free_copies,
)
from unreel.evaluation.run_cost import (
    add_earlier_question_costs,
    add_earlier_run_cost,
    note_estimated_costs,
)
from unreel.evaluation.stored_recipe import (
    RunRecipeStore,
    StoredBenchmarkReference,
    StoredRecipe,
    read_run_recipe,
    require_unchanged_benchmark,
)
from unreel.media.access import open_media_reader
from unreel.reviewers.clip_inputs import build_clip_input
from unreel.reviewers.contract import InputKind, Reviewer
from unreel.reviewers.factory import ReviewerFactory, wrap_open_reviewer
from unreel.reviewers.registry import REVIEWERS

if TYPE_CHECKING:  # importing the baselines takes a second
    from unreel.reviewers.baselines.fitting import BaselineTrainingClip


@dataclass(frozen=True, slots=True)
class LabelledClip:
    """Clip with its origin and its group of related clips, for fitting a baseline."""

    clip: Clip
    origin: Origin
    group: str


def build_reviewer_factory(
    recipe: EvalRecipe,
    *,
    access: ClipAccessSettings,
    learn_from: Callable[[], Iterator[LabelledClip]],
) -> ReviewerFactory:
    """Return the reviewer factory of `recipe`; a baseline is fitted on the clips of `learn_from`."""
    section = recipe.reviewer
    section.require_trained_for([recipe.protocol])
    if not section.learns:
        return section.opener(key_hosts=access.settings.key_hosts, seed=recipe.seed)
    fit: Any = REVIEWERS.load(section.model)
    wants = frozenset({InputKind.FRAMES}) if section.model == "motion" else frozenset()
    training_clips = _iter_training_clips(
        learn_from(), access, condition=recipe.conditions[0], wants=wants
    )
    return wrap_open_reviewer(fit(training_clips, seed=recipe.seed))


def _iter_training_clips(
    clips: Iterator[LabelledClip],
    access: ClipAccessSettings,
    *,
    condition: Condition,
    wants: frozenset[InputKind],
) -> Iterator["BaselineTrainingClip"]:
    from unreel.reviewers.baselines.fitting import BaselineTrainingClip

    with open_media_reader(access.settings, trusted=access.trusted) as reader:
        for item in clips:
            with provide_local_clip_file(item.clip.location, access) as file:
                clip_input = build_clip_input(
                    item.clip, file, reader=reader, condition=condition, wants=wants
                )
            if isinstance(clip_input, Failure):
                continue  # a clip without features is skipped; its question ends as a failure
            yield BaselineTrainingClip(clip_input=clip_input, origin=item.origin, group=item.group)


NEVER_PUT = frozenset({FailureReason.BUDGET_SPENT.value, FailureReason.CLIP_CHANGED.value})
"""Failure reasons of questions that were not sent: the next run sends them, regardless of `retry_failed`."""
DRIVER = "run"
"""Name of the lock that the driver of a run holds."""


@dataclass(frozen=True, kw_only=True)
class EvalRun:
    """Evaluation run with its location, recipe and tables, which cache their key indexes."""

    place: StorageLocation
    recipe: EvalRecipe
    access: ClipAccessSettings
    ledgers: Path
    """Local folder of the ledgers of started rows, which the next call on this machine finds again."""
    asked: Instrument | None = None
    """Protocol and version of the stored answers; `None` means the version of this release."""
    kept: StoredBenchmarkReference | None = None
    """Stored reference to the benchmark, if the run was opened again."""
    moved_to: Path | None = None
    """Current path of the benchmark, if the user named it."""
    asked_outside: bool = False
    """Whether the stored run used `--allow-outside`, which is then needed again to open its benchmark."""
    accept_changed: bool = False
    """Whether the user accepts that the settings or the benchmark changed since the run asked its questions."""

    @cached_property
    def answers(self) -> LanceTable:
        return LanceTable(self.place / "answers.lance", ANSWERS)

    @cached_property
    def clips(self) -> LanceTable:
        return LanceTable(self.place / "clips.lance", CLIPS)

    @cached_property
    def rulings(self) -> LanceTable:
        """Return the table of judges' rulings on the run's explanations."""
        return LanceTable(self.place / "rulings.lance", RULINGS)

    @property
    def scope(self) -> QuestionScope:
        """Return the protocol and conditions of the run's questions."""
        recipe = self.recipe
        instrument = self.asked or recipe.instrument.instrument
        return QuestionScope(instrument=instrument, conditions=recipe.conditions, seed=recipe.seed)

    @property
    def benchmark_path(self) -> Path:
        """Return the benchmark's path; raise `UnreadableSourceError` if it is not where it is stored."""
        if self.moved_to is not None:
            return self.moved_to
        return Path(self.recipe.benchmark) if self.kept is None else self.kept.find(self.place)

    def benchmark(self) -> Benchmark:
        """Open the benchmark of the run.

        Raises:
            InvalidSettingError: The benchmark's table names files outside its directory, and that is
                not allowed.
        """
        recipe, outside = self.recipe, self.access.outside
        if self.asked_outside and not outside:
            raise InvalidSettingError(
                "--allow-outside",
                f"{self.place.uri} was started with it",
                "Add it if you trust the table: it may name any file of this machine",
            )
        mapping = recipe.mapping or None
        return open_benchmark(self.benchmark_path, recipe.layout, mapping=mapping, outside=outside)

    def entries(self, benchmark: Benchmark, stats: BenchmarkStats | None = None) -> Iterator[Entry]:
        """Yield the entries of the run, at least one; `stats` counts all rows.

        Raises:
            UnreelError: The benchmark has no usable entry; the error gives the reason.
        """
        stats, recipe = stats or BenchmarkStats(), self.recipe
        usable = (e for e in stats.watch(benchmark) if recipe.split in {None, e.split})
        chosen: Iterator[Entry] = itertools.islice(usable, recipe.limit)
        if recipe.limit is not None and recipe.choice == "balanced":
            choice = sample_balanced_entries(usable, recipe.limit, seed=recipe.seed)
            stats.drawn, chosen = choice.drawn, iter(choice.entries)
        first = next(chosen, None)
        if first is None:
            raise stats.nothing(str(self.benchmark_path), recipe.split)
        yield from itertools.chain([first], chosen)

    def survey(self, *tables: LanceTable) -> StoredClipFacts:
        """Return the stored properties of the run's clips; `tables` are searched before its own table."""
        return StoredClipFacts(*tables, self.clips)

    def plan(
        self, facts: StoredClipFacts | None = None
    ) -> Iterator[PlannedQuestion[Clip] | UnreadableClip | Rejected]:
        """Yield the questions of the run; the properties of its clips must be stored before.

        Raises:
            InvalidSettingError: The benchmark has changed since the run sent its questions.
            UnreadableSourceError: The benchmark gives no question.
        """
        benchmark, scope, reading = self.benchmark(), self.scope, BenchmarkStats()
        files = (facts or self.survey()).find_files(
            benchmark, self.entries(benchmark, reading), cleaned=scope.shows_cleaned
        )
        questions = plan_questions(files, scope)
        yield from require_some_question(questions, scope, source=str(self.benchmark_path))
        if self.kept is not None and reading.identity is not None and not self.accept_changed:
            require_unchanged_benchmark(
                self.kept, reading.identity, path=self.benchmark_path, location=self.place
            )

    def reviewer_name(self) -> str:
        """Return the reviewer name that is stored with the run's answers."""
        return _require_stored_recipe(self.place).reviewer


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalSummary:
    """Result of one evaluation of a run: counts of clips, answers, and skipped or rejected rows."""

    reviewer: str
    clips: JobRunSummary
    answers: JobRunSummary
    unreadable: Mapping[str, int] = field(default_factory=dict)
    """Number of clips that could not be read for a question, by failure reason."""
    first_unreadable: str = ""
    """Name of the first unreadable clip, with its failure."""
    n_rejected: int = 0
    """Number of benchmark rows that cannot be used, or lack the ground truth of the protocol."""
    rejected: tuple[Rejected, ...] = ()
    """First rejected rows."""
    drawn: BenchmarkSampleCounts | None = None
    """Sample counts of a limit; `None` without a limit, or if it takes the first rows."""


@translate_store_errors()
def evaluate(
    run: EvalRun,
    *,
    engine: str = "local",
    retry_failed: Collection[str] = (),
    pace: CommitPace | None = None,
    reviewer: Reviewer | None = None,
    facts_table: LanceTable | None = None,
    wanted: Callable[[Row], bool] = lambda _question: True,
    callbacks: JobCallbacks = NO_CALLBACKS,
) -> EvalSummary:
    """Send every unanswered question of the run, and store the answers.

    The benchmark is read twice: for the clip properties, then for the questions. A long one is read
    once more before, if answers exist, to check that it is unchanged.
    `callbacks.on_due` gets the number of due `clips` and `answers`. If there are too many to read
    ahead, it gets only the largest possible number of answers. Files in the table `facts_table` are
    not probed again. Questions that `wanted` rejects stay due. `reviewer` replaces the reviewer of
    the recipe. `pace` decides when rows are committed.

    Raises:
        InvalidSettingError: The run was begun with another reviewer, recipe or benchmark.
    """
    require_conditional_puts(run.place)
    callbacks.on_phase(f"reading {run.recipe.benchmark}")
    benchmark = run.benchmark()
    skipped, cleaned = SkippedQuestionCounts(), run.scope.shows_cleaned
    reading = skipped.reading
    learns = reviewer is None and run.recipe.reviewer.learns
    # A reviewer that cannot be opened is reported before the first clip is opened.
    factory = None if learns else _get_reviewer_factory(run, reviewer)
    roll = CountedEntryStream(run.entries(benchmark, reading), keeps=learns)
    if roll.ahead.is_whole:
        require_watermark_free_copies(run.scope, roll)
        truthless = find_entries_without_truth(roll.ahead.first, run.scope)
        if len(truthless) == len(roll.ahead.first):
            raise build_no_question_error(str(run.benchmark_path), run.scope.protocol, truthless)

    def put(
        part: str,
        rows: Iterable[Row],
        stage: Stage,
        *,
        table: LanceTable,
        retry: Collection[str],
        most_due: int | None = None,
    ) -> JobRunSummary:
        return run_stages(
            rows,
            [stage],
            table=table,
            engine=runner,
            retry_failed=retry,
            ledger=OutputDirectory(run.ledgers).make() / f"{part}.ledger",
            pace=pace,
            add_up=add_row_costs,
            most_due=most_due,
            on_due=partial(callbacks.on_due, part),
            on_progress=note_estimated_costs(partial(callbacks.on_step, part), callbacks.on_note),
            observe=lambda step, n_rows: callbacks.observe(f"{part}-{step}", n_rows),
        )

    retry = NEVER_PUT.union(retry_failed)
    # A second driver is rejected before it changes anything.
    with build_writer_lock(run.place / DRIVER), open_shared_runner(engine) as runner:
        keeper = get_recipe_store(run)
        known = None if factory is None else factory.name
        keeper.take_up(
            known, partial(identify_current_benchmark, run, benchmark, reading), callbacks.on_note
        )
        if (
            keeper.before is None
        ):  # `--out RUN` alone continues also if the reading of clips is stopped
            keeper.keep(known or run.recipe.reviewer.model, None)
        clips = iter_clip_file_rows(benchmark, roll, run.access, cleaned=cleaned)
        if facts_table is not None:
            clips = reuse_stored_clip_facts(clips, facts_table)
        survey = ClipProbeStage(run.access)
        looked_at = put("clips", clips, survey, table=run.clips, retry=retry_failed)
        require_watermark_free_copies(run.scope, roll)
        if factory is None:
            callbacks.on_phase(f"{run.recipe.reviewer.model} learns from the clips")
            learn_from = partial(_iter_learnable_clips, run, benchmark, roll.kept)
            factory = build_reviewer_factory(run.recipe, access=run.access, learn_from=learn_from)
        keeper.keep(factory.name, reading.identity)
        callbacks.on_phase("counting the questions")
        stage = ReviewStage(
            add_earlier_run_cost(factory, run.answers, run.ledgers),
            run.access,
            in_flight=run.recipe.reviewer.max_connections,
        )
        questions: Iterable[Row] = add_earlier_question_costs(
            filter(wanted, skipped.sift(run.plan(), factory.name)), run.answers, retry=retry
        )
        max_due = roll.n_entries * len(run.scope.conditions) - run.answers.count()
        answers = put("answers", questions, stage, table=run.answers, retry=retry, most_due=max_due)
    return EvalSummary(
        reviewer=factory.name,
        clips=looked_at,
        answers=answers,
        unreadable=dict(skipped.unreadable),
        first_unreadable=skipped.first_unreadable,
        n_rejected=reading.n_rejected,
        rejected=tuple(reading.rejected),
        drawn=reading.drawn,
    )


def identify_current_benchmark(
    run: EvalRun, benchmark: Benchmark, stats: BenchmarkStats, stored: StoredRecipe
) -> BenchmarkIdentity | None:
    """Return the current identity of the run's benchmark, from `stats` or by reading it again."""
    if stored.outside != run.access.outside:
        access = replace(run.access, outside=stored.outside)
        return compute_benchmark_identity(replace(run, access=access).benchmark())
    return stats.identity or compute_benchmark_identity(benchmark)


def get_recipe_store(run: EvalRun) -> RunRecipeStore:
    """Return the store of the run's recipe, which rejects another reviewer, recipe or benchmark."""
    before = read_run_recipe(run.place)
    stored = before if run.answers.count() else None
    return RunRecipeStore(
        place=run.place,
        recipe=run.recipe,
        outside=run.access.outside,
        accept_changed=run.accept_changed,
        before=stored,
    )


def _get_reviewer_factory(run: EvalRun, reviewer: Reviewer | None) -> ReviewerFactory:
    if reviewer is not None:
        return wrap_open_reviewer(reviewer)
    return build_reviewer_factory(run.recipe, access=run.access, learn_from=lambda: iter(()))


def open_run(
    location: StorageLocation,
    access: ClipAccessSettings,
    *,
    ledgers: Path,
    moved_to: Path | None = None,
    accept_changed: bool = False,
) -> EvalRun:
    """Open the run at `location`, with its stored recipe.

    Raises:
        InvalidSettingError: There is no run at `location`.
        UnreadableSourceError: The recipe is damaged, or from another release.
    """
    stored = _require_stored_recipe(location)
    return EvalRun(
        place=location,
        recipe=stored.recipe,
        access=access,
        ledgers=ledgers,
        asked=stored.instrument,
        kept=stored.benchmark,
        moved_to=moved_to,
        asked_outside=stored.outside,
        accept_changed=accept_changed,
    )


def _require_stored_recipe(location: StorageLocation) -> StoredRecipe:
    stored = read_run_recipe(location)
    if stored is None:
        raise InvalidSettingError(
            "run", f"{location.uri} contains no run", "Name a folder that `unreel eval --out` wrote"
        )
    return stored


def _iter_learnable_clips(
    run: EvalRun, benchmark: Benchmark, entries: Iterable[Entry]
) -> Iterator[LabelledClip]:
    cleaned = run.scope.shows_cleaned
    for file in run.survey().find_files(benchmark, entries, cleaned=cleaned):
        for clip in (file.clip, file.cleaned):
            if isinstance(clip, Clip):
                yield LabelledClip(clip, file.entry.origin, file.entry.group)
