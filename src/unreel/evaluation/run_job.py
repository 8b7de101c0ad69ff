"""Evaluation run: recipe, benchmark, planned questions, unanswered questions, answers, summary."""

import itertools
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from unreel.asking.answer_table import (
    ANSWERS,
    ESTIMATED,
    PAID,
    build_answer_columns,
    build_question_columns,
)
from unreel.asking.asker import Asker
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
from unreel.catalogue.owner_prompts import find_prompt_owner, read_owner_prompt
from unreel.core.clip import Clip, Origin
from unreel.core.errors import InvalidSettingError, RequestsRejectedError
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import build_question_subject
from unreel.core.output_files import OutputDirectory
from unreel.core.question import Condition, Instrument, Question
from unreel.engine.clip_facts import (
    CLIPS,
    FACTS,
    ClipProbeStage,
    StoredClipFacts,
    iter_clip_file_rows,
    reuse_stored_clip_facts,
)
from unreel.engine.committer import CommitPace
from unreel.engine.location import StorageLocation, require_conditional_puts, translate_store_errors
from unreel.engine.progress import NO_CALLBACKS, JobCallbacks, Progress
from unreel.engine.run import JobRunSummary, PrefetchedIterator, open_shared_runner
from unreel.engine.run import run_pending_questions as run_stages
from unreel.engine.stage import MediaStage, Row, Stage, WorkerResources, convert_to_failed_row
from unreel.engine.storage_access import (
    ClipAccessSettings,
    find_clip_change,
    provide_local_clip_file,
)
from unreel.engine.table import LanceTable
from unreel.engine.writer_lock import build_writer_lock
from unreel.evaluation.judge import RULINGS
from unreel.evaluation.recipe import EvalRecipe
from unreel.evaluation.stored_recipe import (
    BATCHES_FILE,
    RECIPE_FILE,
    StoredBenchmarkReference,
    StoredRecipe,
    build_benchmark_reference,
    find_recipe_changes,
    format_benchmark_change,
    read_run_recipe,
    require_unchanged_benchmark,
)
from unreel.media.access import open_media_reader
from unreel.reviewers.clip_inputs import build_clip_input
from unreel.reviewers.contract import InputKind, Reviewer
from unreel.reviewers.endpoint.budget import (
    EarlierSpending,
    compact_spending_log,
    read_spending_total,
)
from unreel.reviewers.factory import ReviewerFactory, wrap_open_reviewer
from unreel.reviewers.registry import REVIEWERS

if TYPE_CHECKING:  # importing the baselines takes a second
    from unreel.reviewers.baselines.fitting import BaselineTrainingClip

NOT_SENT = frozenset({FailureReason.BUDGET_SPENT.value, FailureReason.CLIP_CHANGED.value})
"""Failure reasons of questions that were not sent: the next run sends them, regardless of `retry_failed`."""
DRIVER = "run"
"""Name of the lock that the driver of a run holds."""
ESTIMATE_NOTE = (
    "the server reported no token usage for some requests: their cost is estimated from the request "
    "and the token limit (usage_estimated in the answers)"
)
_LOG = "answers.spending"
_MAX_REJECTIONS = 8
"""Number of equal rejections, without an answer, after which a server is not asked further."""
_CONDITION = TypeAdapter(Condition)
_OUT = "out"


@dataclass(frozen=True, kw_only=True)
class EvalRun:
    """Evaluation run with its location, recipe and tables, which cache their key indexes."""

    place: StorageLocation
    recipe: EvalRecipe
    access: ClipAccessSettings
    ledgers: Path
    """Local folder of the ledgers of started rows, which the next call on this machine finds again."""
    instrument: Instrument | None = None
    """Protocol and version of the stored answers; `None` means the version of this release."""
    stored_benchmark: StoredBenchmarkReference | None = None
    """Stored reference to the benchmark, if the run was opened again."""
    moved_to: Path | None = None
    """Current path of the benchmark, if the user named it."""
    used_outside: bool = False
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
        instrument = self.instrument or recipe.instrument.instrument
        return QuestionScope(instrument=instrument, conditions=recipe.conditions, seed=recipe.seed)

    @property
    def benchmark_path(self) -> Path:
        """Return the benchmark's path; raise `UnreadableSourceError` if it is not where it is stored."""
        if self.moved_to is not None:
            return self.moved_to
        if self.stored_benchmark is not None:
            return self.stored_benchmark.find(self.place)
        return Path(self.recipe.benchmark)

    def benchmark(self) -> Benchmark:
        """Open the benchmark of the run.

        Raise `InvalidSettingError` if the benchmark's table names files outside its directory, and
        that is not allowed.
        """
        recipe, outside = self.recipe, self.access.outside
        if self.used_outside and not outside:
            raise InvalidSettingError(
                "--allow-outside",
                f"{self.place.uri} was started with it",
                "Add --allow-outside if you trust the table: a table may name any file of this machine",
            )
        mapping = recipe.mapping or None
        return open_benchmark(self.benchmark_path, recipe.layout, mapping=mapping, outside=outside)

    def entries(self, benchmark: Benchmark, stats: BenchmarkStats | None = None) -> Iterator[Entry]:
        """Yield the entries of the run, at least one; `stats` counts all rows.

        Raise `UnreelError` if the benchmark has no usable entry; the error gives the reason.
        """
        stats, recipe = stats or BenchmarkStats(), self.recipe
        usable = (e for e in stats.watch(benchmark) if recipe.split in {None, e.split})
        chosen: Iterator[Entry] = itertools.islice(usable, recipe.limit)
        if recipe.limit is not None and recipe.choice == "balanced":
            sample, stats.drawn = sample_balanced_entries(usable, recipe.limit, seed=recipe.seed)
            chosen = iter(sample)
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

        Raise `InvalidSettingError` if the benchmark has changed since the run sent its questions,
        or `UnreadableSourceError` if the benchmark gives no question.
        """
        benchmark, scope, stats = self.benchmark(), self.scope, BenchmarkStats()
        entries = self.entries(benchmark, stats)
        files = (facts or self.survey()).find_files(benchmark, entries, cleaned=scope.shows_cleaned)
        questions = plan_questions(files, scope)
        yield from require_some_question(questions, scope, source=str(self.benchmark_path))
        stored, identity = self.stored_benchmark, stats.identity
        if stored is not None and identity is not None and not self.accept_changed:
            require_unchanged_benchmark(
                stored, identity, path=self.benchmark_path, location=self.place
            )

    def reviewer_name(self) -> str:
        """Return the reviewer name that is stored with the run's answers."""
        return _require_stored_recipe(self.place).reviewer


def open_run(
    location: StorageLocation,
    access: ClipAccessSettings,
    *,
    ledgers: Path,
    moved_to: Path | None = None,
    accept_changed: bool = False,
) -> EvalRun:
    """Open the run at `location`, with its stored recipe.

    Raise `InvalidSettingError` if `location` contains no run, or `UnreadableSourceError` if the
    recipe is damaged, or from another release.
    """
    stored = _require_stored_recipe(location)
    return EvalRun(
        place=location,
        recipe=stored.recipe,
        access=access,
        ledgers=ledgers,
        instrument=stored.instrument,
        stored_benchmark=stored.benchmark,
        moved_to=moved_to,
        used_outside=stored.outside,
        accept_changed=accept_changed,
    )


def _require_stored_recipe(location: StorageLocation) -> StoredRecipe:
    stored = read_run_recipe(location)
    if stored is None:
        raise InvalidSettingError(
            "run", f"{location.uri} contains no run", "Name a folder that `unreel eval --out` wrote"
        )
    return stored


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
    in_batches: bool = False,
    wanted: Callable[[Row], bool] = lambda _question: True,
    callbacks: JobCallbacks = NO_CALLBACKS,
) -> EvalSummary:
    """Send every unanswered question of the run, and store the answers.

    The benchmark is read twice: for the clip properties, then for the questions. A long one is read
    once more before, if answers exist, to check that it is unchanged. `callbacks.on_due` gets the
    number of due `clips` and `answers`. If there are too many to read ahead, it gets only the
    largest possible number of answers. Files in the table `facts_table` are not probed again.
    With `in_batches`, the provider of the model gets files of questions and answers within a day at
    half the price. Questions that `wanted` rejects stay due. `reviewer` replaces the reviewer of the recipe. `pace`
    decides when rows are committed. Raise `InvalidSettingError` if the run was begun with another
    reviewer, recipe or benchmark.
    """
    recipe, scope = run.recipe, run.scope
    require_conditional_puts(run.place)
    _require_askable(run, in_batches=in_batches)

    # The benchmark. What cannot work is reported before the first clip is opened.
    callbacks.on_phase(f"reading {recipe.benchmark}")
    benchmark = run.benchmark()
    factory = None
    if reviewer is not None:
        factory = wrap_open_reviewer(reviewer)
    elif not recipe.reviewer.learns:
        factory = build_reviewer_factory(recipe, access=run.access, clips=())
    skipped = SkippedQuestionCounts()
    stats = skipped.reading
    entries = _EntryStream(run.entries(benchmark, stats), keeps=factory is None)
    if entries.source.is_whole:
        _require_watermark_free_copies(scope, entries)
        truthless = find_entries_without_truth(entries.source.first, scope)
        if len(truthless) == len(entries.source.first):
            raise build_no_question_error(str(run.benchmark_path), scope.protocol, truthless)

    def run_stage(
        part: str, rows: Iterable[Row], stage: Stage, *, retry: Collection[str], **options: Any
    ) -> JobRunSummary:
        on_step = partial(callbacks.on_step, part)
        notes = [ESTIMATE_NOTE]

        def note_and_report(progress: Progress) -> None:
            if notes and progress.totals.get(ESTIMATED):
                callbacks.on_note(notes.pop())
            on_step(progress)

        return run_stages(
            rows,
            [stage],
            engine=runner,
            retry_failed=retry,
            ledger=OutputDirectory(run.ledgers).make() / f"{part}.ledger",
            pace=pace,
            add_up=add_row_costs,
            on_due=partial(callbacks.on_due, part),
            on_progress=note_and_report,
            observe=lambda step, n_rows: callbacks.observe(f"{part}-{step}", n_rows),
            **options,
        )

    # A second driver is rejected before it changes anything.
    with build_writer_lock(run.place / DRIVER), open_shared_runner(engine) as runner:
        name = None if factory is None else factory.name
        before = require_resumable(run, benchmark, stats, reviewer=name, on_note=callbacks.on_note)
        if before is None:  # `--out RUN` alone continues also if the reading of clips is stopped
            write_run_recipe(run, name or recipe.reviewer.model, None)

        # The properties of the clips, and a baseline that learns from them.
        files = iter_clip_file_rows(benchmark, entries, run.access, cleaned=scope.shows_cleaned)
        if facts_table is not None:
            files = reuse_stored_clip_facts(files, facts_table)
        probe = ClipProbeStage(run.access)
        clips = run_stage("clips", files, probe, retry=retry_failed, table=run.clips)
        _require_watermark_free_copies(scope, entries)
        if factory is None:
            callbacks.on_phase(f"{recipe.reviewer.model} learns from the clips")
            found = run.survey().find_files(benchmark, entries.kept, cleaned=scope.shows_cleaned)
            training_clips = (
                (clip, file.entry.origin, file.entry.group)
                for file in found
                for clip in (file.clip, file.cleaned)
                if isinstance(clip, Clip)
            )
            factory = build_reviewer_factory(recipe, access=run.access, clips=training_clips)
        if before is not None:
            require_same_reviewer(run, before, factory.name)
        write_run_recipe(run, factory.name, stats.identity)

        # The plan, its unanswered questions, their answers.
        callbacks.on_phase("counting the questions")
        retry = NOT_SENT.union(retry_failed)
        build_stage = partial(
            ReviewStage, access=run.access, in_flight=recipe.reviewer.max_connections
        )
        with ExitStack() as stack:
            if in_batches:  # its client is slow to import
                from unreel.evaluation.batch_job import open_batch_answers

                uncounted = SkippedQuestionCounts()
                collected = filter(wanted, uncounted.select_questions(run.plan(), factory.name))
                batched = open_batch_answers(
                    recipe.reviewer,
                    factory,
                    collected,
                    place=run.place,
                    answer_table=run.answers,
                    key_hosts=run.access.settings.key_hosts,
                    build_stage=build_stage,
                    earlier_usd=sum(_list_answer_costs(run.answers), Decimal()),
                    retry=retry,
                    callbacks=callbacks,
                )
                factory = stack.enter_context(batched)
            else:
                factory = _add_earlier_run_cost(factory, run)
            questions = filter(wanted, skipped.select_questions(run.plan(), factory.name))
            answers = run_stage(
                "answers",
                _add_earlier_question_costs(questions, run.answers, retry=retry),
                build_stage(factory),
                retry=retry,
                table=run.answers,
                most_due=entries.n_entries * len(scope.conditions) - run.answers.count(),
            )
    return EvalSummary(
        reviewer=factory.name,
        clips=clips,
        answers=answers,
        unreadable=dict(skipped.unreadable),
        first_unreadable=skipped.first_unreadable,
        n_rejected=stats.n_rejected,
        rejected=tuple(stats.rejected),
        drawn=stats.drawn,
    )


def _require_askable(run: EvalRun, *, in_batches: bool) -> None:
    """Raise if a prompt was not fetched, or questions that are in batches would be asked again."""
    for condition in run.recipe.conditions:
        read_owner_prompt(condition.prompt)
    if not in_batches and run.place.size(BATCHES_FILE) is not None:
        raise InvalidSettingError(
            "--batch",
            f"questions of {run.place.uri} are in batches",
            "Continue with --batch: otherwise these questions would be asked twice",
        )


def build_reviewer_factory(
    recipe: EvalRecipe, *, access: ClipAccessSettings, clips: Iterable[tuple[Clip, Origin, str]]
) -> ReviewerFactory:
    """Return the reviewer factory of `recipe`; a baseline is fitted on `clips`.

    A clip has its origin and its group of related clips.
    """
    section = recipe.reviewer
    section.require_trained_for([recipe.protocol])
    if not section.learns:
        return section.opener(key_hosts=access.settings.key_hosts, seed=recipe.seed)
    fit: Any = REVIEWERS.load(section.model)
    inputs = _iter_training_clips(recipe, access, clips)
    return wrap_open_reviewer(fit(inputs, seed=recipe.seed))


def _iter_training_clips(
    recipe: EvalRecipe, access: ClipAccessSettings, clips: Iterable[tuple[Clip, Origin, str]]
) -> Iterator["BaselineTrainingClip"]:
    from unreel.reviewers.baselines.fitting import BaselineTrainingClip

    condition, is_motion = recipe.conditions[0], recipe.reviewer.model == "motion"
    kinds = frozenset({InputKind.FRAMES}) if is_motion else frozenset()
    with open_media_reader(access.settings, trusted=access.trusted) as reader:
        for clip, origin, group in clips:
            with provide_local_clip_file(clip.location, access) as file:
                clip_input = build_clip_input(
                    clip, file, reader=reader, condition=condition, wants=kinds
                )
            # A clip without features is skipped; its question ends as a failure.
            if not isinstance(clip_input, Failure):
                yield BaselineTrainingClip(clip_input=clip_input, origin=origin, group=group)


def require_resumable(
    run: EvalRun,
    benchmark: Benchmark,
    stats: BenchmarkStats,
    *,
    reviewer: str | None = None,
    on_note: Callable[[str], None] = lambda _note: None,
) -> StoredRecipe | None:
    """Check that `run` may resume the run at its place; return the recipe of its answers, if any.

    Raise `InvalidSettingError` if the stored run has another reviewer, another benchmark or other
    settings.
    """
    before = read_run_recipe(run.place)
    if before is None or not run.answers.count():
        return None
    if reviewer is not None:
        require_same_reviewer(run, before, reviewer)
    uri = run.place.uri
    remedy = (
        f"Keep this in another folder, for example --out {uri.rstrip('/')}-2; or {{}}; or "
        "change the run: --accept-changed asks the unanswered questions about the present files"
    )
    changes = find_recipe_changes(before.recipe, run.recipe)
    refused = [text for text, grows in changes if not grows]
    if before.outside and not run.access.outside:
        refused.append("files outside the table's folder before (--allow-outside), none now")
    if refused and not run.accept_changed:
        raise InvalidSettingError(
            _OUT,
            f"{uri} contains a run with other settings: {'; '.join(refused)}",
            remedy.format(f"`unreel eval --out {uri}` asks as before"),
        )
    stored = before.benchmark
    if stored is None or stored.identity is None:
        on_note(
            f"the benchmark of {uri} is not known: the recipe has no fingerprint. "
            f"It is assumed to be {run.recipe.benchmark}"
        )
    elif not run.accept_changed:
        if before.outside == run.access.outside:
            identity = stats.identity or compute_benchmark_identity(benchmark)
        else:
            access = replace(run.access, outside=before.outside)
            identity = compute_benchmark_identity(replace(run, access=access).benchmark())
        if identity and (change := format_benchmark_change(stored.identity, identity)):
            raise InvalidSettingError(
                _OUT,
                f"{uri} contains a run over another benchmark, {stored.at}: {change}",
                remedy.format("restore the original benchmark"),
            )
    if growth := [text for text, grows in changes if grows]:
        on_note(f"the run in {uri} grows: {'; '.join(growth)}")
    old, new = (
        each.reviewer.recorded or each.reviewer.model for each in (before.recipe, run.recipe)
    )
    if old != new:
        on_note(
            f"the run was started with {old} and continues with {new}, assumed to be the same reviewer"
        )
    return before


def require_same_reviewer(run: EvalRun, before: StoredRecipe, reviewer: str) -> None:
    """Raise an error if the run's answers are of another reviewer or another protocol version."""
    section, instrument = run.recipe.reviewer, run.recipe.instrument.instrument
    if (before.instrument, before.reviewer) == (instrument, reviewer):
        return
    text = f"{run.place.uri} contains a run of {before.reviewer}"
    problem, remedy = f"{text}, not of {reviewer}", "Name another folder, or the same recipe"
    if before.instrument != instrument:
        problem = f"{text} with the protocol {before.instrument}"
        remedy = (
            f"Name another folder: this release uses {instrument}. It can score the stored answers"
        )
    elif section.learns and before.recipe.reviewer.model == section.model:
        problem = f"{text}; with its present clips, {section.model} is {reviewer}"
        remedy = "Restore the clips that it was trained on, or name another folder with --out"
    raise InvalidSettingError(_OUT, problem, remedy)


def write_run_recipe(run: EvalRun, reviewer: str, identity: BenchmarkIdentity | None) -> None:
    """Write the recipe of a run, with its reviewer and the identity of its benchmark."""
    reference = build_benchmark_reference(Path(run.recipe.benchmark), run.place, identity)
    document: dict[str, Any] = {
        "reviewer": reviewer,
        "instrument": str(run.recipe.instrument.instrument),
        "recipe": run.recipe.stored(),
        "benchmark": reference.model_dump(mode="json", exclude_none=True),
    }
    references = {
        condition.prompt: owner.prompt.value.model_dump(mode="json", exclude_none=True)
        for condition in run.recipe.conditions
        if (owner := find_prompt_owner(condition.prompt)) and owner.prompt and owner.prompt.value
    }
    if references:
        document["prompts"] = references
    if run.access.outside:
        document["allow_outside"] = True
    run.place.put(RECIPE_FILE, (json.dumps(document, indent=2, sort_keys=True) + "\n").encode())


class _EntryStream:
    """Iterator over the benchmark entries of a run that counts them.

    Args:
        entries: Entries, iterated once.
        keeps: Whether the entries stay in memory, for a fitted baseline.
    """

    def __init__(self, entries: Iterable[Entry], *, keeps: bool) -> None:
        self.source = PrefetchedIterator(entries)
        self.n_entries = 0
        self.has_cleaned = any(entry.cleaned for entry in self.source.first)
        """Whether an entry that was yielded or read ahead has a copy without its watermark."""
        self.kept: list[Entry] = []
        self._keeps = keeps

    def __iter__(self) -> Iterator[Entry]:
        for entry in self.source:
            self.n_entries += 1
            self.has_cleaned |= bool(entry.cleaned)
            if self._keeps:
                self.kept.append(entry)
            yield entry


def _require_watermark_free_copies(scope: QuestionScope, entries: _EntryStream) -> None:
    if scope.shows_cleaned and not entries.has_cleaned:
        raise InvalidSettingError(
            "watermark",
            "no clip of the benchmark has a copy without its watermark",
            "Ask with watermark=kept, or name such copies in a column `cleaned`",
        )


class SkippedQuestionCounts:
    """Counts of questions that a run skips, by reason, collected while it plans its questions."""

    def __init__(self) -> None:
        self.unreadable: Counter[str] = Counter()
        self.first_unreadable = ""
        self.reading = BenchmarkStats()

    def select_questions(
        self, plan: Iterable[PlannedQuestion[Clip] | UnreadableClip | Rejected], reviewer: str
    ) -> Iterator[Row]:
        """Yield the row of each question before it is sent; columns that begin with `_` are not stored."""
        for planned in plan:
            if not isinstance(planned, PlannedQuestion):
                self.leave(planned)
                continue
            question = planned.question
            yield {
                **build_question_columns(question, reviewer),
                "_condition": json.dumps(asdict(question.condition)),
                "_name": planned.name,
                "_caption": planned.caption,
                "_locations": [clip.location for clip in planned.clips],
                "_facts": [FACTS.dump_json(clip.facts).decode() for clip in planned.clips],
            }

    def leave(self, planned: UnreadableClip | Rejected) -> None:
        """Count a question that is skipped."""
        match planned:
            case UnreadableClip():
                self.unreadable[planned.failure.reason.value] += 1
                text = f"{planned.name}: {planned.failure}"
                self.first_unreadable = self.first_unreadable or text
            case Rejected():
                self.reading.reject(planned)


class ReviewStage(MediaStage):
    """Stage that sends the question of a row to a reviewer, and stores the answer with its inputs.

    Args:
        factory: Factory of the reviewer, called once in each worker; it must pickle.
        access: Access to clips.
        in_flight: Number of concurrent questions.
    """

    opened = MediaStage.opened | {"_asker", "_reviewer", "_rejections"}

    def __init__(
        self, factory: ReviewerFactory, access: ClipAccessSettings, *, in_flight: int
    ) -> None:
        super().__init__(access, WorkerResources.asking(factory, in_flight))
        self._factory = factory

    def setup(self) -> None:
        super().setup()
        self._asker = Asker(
            self._reader,
            open_file=partial(provide_local_clip_file, access=self._access),
            find_change=find_clip_change,
        )
        self._open.callback(self._asker.close)
        self._reviewer = self._factory.open()
        self._rejections: Counter[str] | None = Counter()
        """Rejections of questions by message, until the first answer."""

    async def __call__(self, row: Row) -> Row:
        ids = [row["clip"]] if row["second"] is None else [row["clip"], row["second"]]
        columns = zip(ids, row["_locations"], row["_facts"], strict=True)
        clips = tuple(
            Clip(id=clip, location=location, facts=FACTS.validate_json(facts))
            for clip, location, facts in columns
        )
        question = Question(
            subject=build_question_subject(*(clip.id for clip in clips)),
            instrument=Instrument(row["protocol"], row["protocol_version"]),
            condition=_CONDITION.validate_json(row["_condition"]),
        )
        result = await self._asker.ask(
            question, clips, self._reviewer, name=row["_name"], caption=row["_caption"]
        )
        answered = row | build_answer_columns(result, row.get("_paid"))
        if isinstance(result.outcome, Failure):
            self._require_some_acceptance(result.outcome)
            return convert_to_failed_row(answered, result.outcome)
        self._rejections = None
        return answered

    def _require_some_acceptance(self, failure: Failure) -> None:
        """Raise if a server rejected the first questions alike, because it would reject all."""
        by_server = failure.detail.startswith("status ")
        if self._rejections is None or not by_server:
            return
        self._rejections[failure.detail] += failure.reason is FailureReason.REQUEST_REJECTED
        if self._rejections[failure.detail] > _MAX_REJECTIONS:
            raise RequestsRejectedError(
                f"the first {_MAX_REJECTIONS} questions were rejected, so no more are sent ({failure.detail})",
                f"{failure.reason.remedy} Add --retry-failed to send these questions again",
            )

    async def close(self) -> None:
        await self._reviewer.reviewer.close()
        super().close()


def add_row_costs(rows: Sequence[Row], totals: dict[str, float]) -> None:
    """Add the costs of `rows` to `totals`, and count the rows whose token usage is estimated."""
    for row in rows:
        if row.get("cost_usd") is not None:
            totals["cost_usd"] = totals.get("cost_usd", 0.0) + row["cost_usd"]
        if row.get("usage_estimated"):
            totals[ESTIMATED] = totals.get(ESTIMATED, 0.0) + 1


def sum_run_cost_usd(answer_table: LanceTable, ledgers: Path) -> Decimal | None:
    """Return a run's cost in USD with failures and lost replies; `None` if no cost is known."""
    costs = _list_answer_costs(answer_table)
    logged = read_spending_total(ledgers / _LOG)
    return max(sum(costs, Decimal()), logged) if costs or logged else None


def _list_answer_costs(answer_table: LanceTable) -> list[Decimal]:
    if not answer_table.exists():
        return []
    rows = answer_table.rows(["cost_usd"], where="cost_usd IS NOT NULL")
    return [Decimal(str(row["cost_usd"])) for row in rows]


def _add_earlier_run_cost(factory: ReviewerFactory, run: EvalRun) -> ReviewerFactory:
    """Return the factory with the run's earlier cost counted; no other process may send then."""
    if factory.max_cost_usd is None:
        return factory
    costs = _list_answer_costs(run.answers)
    log = OutputDirectory(run.ledgers).make() / _LOG
    before = EarlierSpending(
        spent_usd=compact_spending_log(log, at_least_usd=sum(costs, Decimal())),
        dearest_usd=max(costs, default=Decimal()),
        log=log,
    )
    return factory.after(before)


def _add_earlier_question_costs(
    questions: Iterable[Row], answer_table: LanceTable, *, retry: Collection[str]
) -> Iterator[Row]:
    """Yield the questions; a retried one gets the tokens and cost of its earlier attempts."""
    paid = {}
    if answer_table.exists():
        where = "failure_reason IS NOT NULL AND (input_tokens IS NOT NULL OR cost_usd IS NOT NULL)"
        paid = {
            row["key"]: {"_paid": {name: row.get(name) for name in (*PAID, ESTIMATED)}}
            for row in answer_table.rows(where=where)
            if row["failure_reason"] in retry
        }
    for question in questions:
        yield question | paid.get(question["key"], {})
