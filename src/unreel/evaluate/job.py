"""A run: a folder or a prefix of a store with its recipe, its clips and its answers."""

import itertools
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from unreel.benchmarks.choosing import Drawn, choose
from unreel.benchmarks.entry import REASONS_SHOWN, Entry, Rejected
from unreel.benchmarks.opening import Benchmark, open_benchmark
from unreel.benchmarks.planning import Planned, Scope, Unaskable, plan_questions
from unreel.core.clip import Clip
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import FailureReason
from unreel.core.question import Instrument
from unreel.core.writing import Folder
from unreel.engine.access import Access
from unreel.engine.committer import CommitPace
from unreel.engine.lock import writer_lock
from unreel.engine.place import Place, require_conditional_puts
from unreel.engine.progress import Progress
from unreel.engine.run import Summary, kept_up
from unreel.engine.run import run as run_stages
from unreel.engine.stage import Row, Stage
from unreel.engine.table import Table
from unreel.engine.trouble import stores_told
from unreel.evaluate.asking import ReviewStage, add_costs, answer_row
from unreel.evaluate.counting import Ahead, Roll, count_due
from unreel.evaluate.fitting import Learnable, describe_reviewer
from unreel.evaluate.recipe import EvalRecipe
from unreel.evaluate.stored_recipe import RECIPE_FILE, StoredRecipe, UnusableRecipe, find_recipe
from unreel.evaluate.survey import Survey, SurveyStage, recall, survey_rows
from unreel.evaluate.tables import ANSWERS, CLIPS, RULINGS
from unreel.reviewers.contract import Reviewer
from unreel.reviewers.opening import Opener, lend

NEVER_PUT: Final = frozenset({FailureReason.BUDGET_SPENT.value, FailureReason.CLIP_CHANGED.value})
"""Questions that were not put: they are due in the next run, whatever is retried."""
DRIVER: Final = "run"
"""What a driver of a run holds the lock of, as long as it drives."""
Step = Callable[[str, Progress], None]
"""Told `clips` or `answers`, and how far that part is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run, where it is kept, and what it asks."""

    place: Place
    recipe: EvalRecipe
    access: Access
    ledgers: Path
    """A local folder for the ledgers of starts; the next try on this machine finds it again."""
    asked: Instrument | None = None
    """What it asked, where it was kept; `None`: what this release asks."""

    @property
    def answers(self) -> Table:
        """The table of answers."""
        return Table(self.place / "answers.lance", ANSWERS)

    @property
    def clips(self) -> Table:
        """The table of clips."""
        return Table(self.place / "clips.lance", CLIPS)

    @property
    def rulings(self) -> Table:
        """The table of what judges made of its explanations."""
        return Table(self.place / "rulings.lance", RULINGS)

    @property
    def scope(self) -> Scope:
        """What is asked about each clip."""
        recipe = self.recipe
        return Scope(
            instrument=self.asked or recipe.instrument.instrument,
            conditions=recipe.conditions,
            seed=recipe.seed,
        )

    def benchmark(self) -> Benchmark:
        """The benchmark that it asks about."""
        recipe = self.recipe
        return open_benchmark(Path(recipe.benchmark), recipe.layout, mapping=recipe.mapping or None)

    def entries(
        self,
        benchmark: Benchmark,
        on_rejected: Callable[[Rejected], None] = lambda _row: None,
        on_drawn: Callable[[Drawn], None] = lambda _drawn: None,
    ) -> Iterator[Entry]:
        """The entries that it asks about; rows that cannot be used are told to `on_rejected`."""
        usable, recipe = self._usable(benchmark, on_rejected), self.recipe
        if recipe.limit is None or recipe.choice == "first":
            return itertools.islice(usable, recipe.limit)
        choice = choose(usable, recipe.limit, seed=recipe.seed)
        on_drawn(choice.drawn)
        return iter(choice.entries)

    def _usable(
        self, benchmark: Benchmark, on_rejected: Callable[[Rejected], None]
    ) -> Iterator[Entry]:
        for row in benchmark:
            if isinstance(row, Rejected):
                on_rejected(row)
            elif self.recipe.split in {None, row.split}:
                yield row

    def plan(self, survey: Survey | None = None) -> Iterator[Planned[Clip] | Unaskable | Rejected]:
        """Its questions, once its clips were surveyed."""
        benchmark, scope = self.benchmark(), self.scope
        found = (survey or Survey(self.clips)).find_files(
            benchmark, self.entries(benchmark), cleaned=scope.shows_cleaned
        )
        return plan_questions(found, scope)

    def reviewer_name(self) -> str:
        """The name that its answers carry."""
        return _require_recipe(self.place).reviewer


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one call of `evaluate` did."""

    reviewer: str
    clips: Summary
    answers: Summary
    unreadable: Mapping[str, int] = field(default_factory=dict)
    """Clips that no question could be put about, by reason."""
    n_rejected: int = 0
    """Rows of the benchmark that cannot be used, or lack the truth to compare with."""
    rejected: tuple[Rejected, ...] = ()
    """The first of them."""
    drawn: Drawn | None = None
    """What a limit took of the benchmark; `None` where there is none, or it takes the first."""


@stores_told()
def evaluate(  # noqa: PLR0913  one thing to run; the rest has defaults
    run: Run,
    *,
    engine: str = "local",
    retry_failed: Collection[str] = (),
    pace: CommitPace | None = None,
    reviewer: Reviewer | None = None,
    surveyed: Run | None = None,
    on_due: Callable[[str, int], None] | None = None,
    on_step: Step = lambda _part, _progress: None,
    on_phase: Callable[[str], None] = lambda _words: None,
    observe: Callable[[str, int], None] = lambda _step, _rows: None,
) -> Outcome:
    """Ask every question of the run that has no answer yet, and keep what comes back.

    The benchmark is gone through twice: to survey its clips, then to ask.

    `on_due` is told each part's name and how many rows it has to do. Of a benchmark that is too long to
    look ahead it is told that many answers at most, and nothing of the clips. `on_phase` is told in words
    what begins between the parts. Files that the run `surveyed` knows are not looked at again. `reviewer` is asked in the place of the one that the recipe describes. `pace` says when rows are committed; `observe` is told
    the steps of each commit, by name and part (`answers-written`), for tests that kill a run.
    """
    require_conditional_puts(run.place)
    on_phase(f"reading {run.recipe.benchmark}")
    benchmark = run.benchmark()
    left_out, cleaned = LeftOut(), run.scope.shows_cleaned
    learns = reviewer is None and run.recipe.reviewer.learns
    # Whoever cannot be asked is told of before the first clip is opened.
    opener = None if learns else _opener(run, reviewer)
    roll = Roll(run.entries(benchmark, left_out.reject, left_out.draw), keeps=learns)
    _require_cleaned(run.scope, roll, is_known=roll.ahead.is_whole)

    def put(
        part: str, rows: Iterable[Row], stage: Stage, *, table: Table, retry: Collection[str]
    ) -> Summary:
        return run_stages(
            rows,
            [stage],
            table=table,
            engine=runner,
            retry_failed=retry,
            ledger=_ledger(run, part),
            pace=pace,
            add_up=add_costs,
            on_progress=lambda progress: on_step(part, progress),
            observe=lambda step, n_rows: observe(f"{part}-{step}", n_rows),
        )

    again = NEVER_PUT.union(retry_failed)
    with _driving(run.place), kept_up(engine) as runner:
        if on_due is not None and roll.ahead.is_whole:
            files = survey_rows(benchmark, roll.ahead.first, run.access, cleaned=cleaned)
            on_due("clips", count_due(files, run.clips, retry=retry_failed))
        clips = survey_rows(benchmark, roll, run.access, cleaned=cleaned)
        if surveyed is not None:
            clips = recall(clips, surveyed.clips)
        survey = SurveyStage(run.access)
        looked_at = put("clips", clips, survey, table=run.clips, retry=retry_failed)
        _require_cleaned(run.scope, roll, is_known=True)
        if opener is None:
            on_phase(f"{run.recipe.reviewer.model} learns from the clips")
            learn_from = partial(_learnables, run, benchmark, roll.kept)
            opener = describe_reviewer(run.recipe, access=run.access, learn_from=learn_from)
        _keep_recipe(run, opener.name)
        on_phase("counting the questions")
        in_flight = run.recipe.reviewer.max_connections
        stage = ReviewStage(opener, run.access, in_flight=in_flight)
        questions: Iterable[Row] = left_out.sift(run.plan(), opener.name)
        if on_due is not None:
            questions = ahead = Ahead(questions)
            most = roll.n_entries * len(run.scope.conditions) - run.answers.count()
            counted = count_due(ahead.first, run.answers, retry=again)
            on_due("answers", counted if ahead.is_whole else max(counted, most))
        asked = put("answers", questions, stage, table=run.answers, retry=again)
    return Outcome(
        reviewer=opener.name,
        clips=looked_at,
        answers=asked,
        unreadable=dict(left_out.unreadable),
        n_rejected=left_out.n_rejected,
        rejected=tuple(left_out.rejected),
        drawn=left_out.drawn,
    )


def _opener(run: Run, reviewer: Reviewer | None) -> Opener:
    if reviewer is not None:
        return lend(reviewer)
    return describe_reviewer(run.recipe, access=run.access, learn_from=lambda: iter(()))


@contextmanager
def _driving(place: Place) -> Iterator[None]:
    """One driver for a run: a second one is refused before it changes anything."""
    require_conditional_puts(place)
    with writer_lock(place / DRIVER):
        yield


def open_run(place: Place, access: Access, *, ledgers: Path) -> Run:
    """The run kept at `place`, with the recipe that it was started with.

    Raises:
        InvalidSettingError: There is none.
        UnreadableSourceError: Its recipe is damaged, or of another release.
    """
    stored = _require_recipe(place)
    return Run(
        place=place, recipe=stored.recipe, access=access, ledgers=ledgers, asked=stored.instrument
    )


def _require_recipe(place: Place) -> StoredRecipe:
    stored = find_recipe(place)
    if isinstance(stored, UnusableRecipe):
        raise stored.error(place.uri)
    if stored is None:
        setting, problem = "run", f"{place.uri} holds no run"
        remedy = "Name a folder that `unreel eval --out` wrote"
        raise InvalidSettingError(setting, problem, remedy)
    return stored


class LeftOut:
    """What is not asked, counted while the questions go by."""

    def __init__(self) -> None:
        self.unreadable: Counter[str] = Counter()
        self.n_rejected = 0
        self.rejected: list[Rejected] = []
        self.drawn: Drawn | None = None

    def draw(self, drawn: Drawn) -> None:
        self.drawn = drawn

    def reject(self, row: Rejected) -> None:
        self.n_rejected += 1
        if len(self.rejected) < REASONS_SHOWN:
            self.rejected.append(row)

    def sift(
        self, plan: Iterable[Planned[Clip] | Unaskable | Rejected], reviewer: str
    ) -> Iterator[dict[str, Any]]:
        for planned in plan:
            if isinstance(planned, Planned):
                yield answer_row(planned, reviewer)
            else:
                self.leave(planned)

    def leave(self, planned: Unaskable | Rejected) -> None:
        match planned:
            case Unaskable():
                self.unreadable[planned.failure.reason.value] += 1
            case Rejected():
                self.reject(planned)


def _require_cleaned(scope: Scope, roll: Roll, *, is_known: bool) -> None:
    """Refuse `watermark=removed` where, as is known, no entry has a copy without its watermark."""
    if scope.shows_cleaned and is_known and not roll.has_cleaned:
        setting, problem = "watermark", "no clip of the benchmark has a copy without its watermark"
        remedy = "Ask with watermark=kept, or name such copies in a column `cleaned`"
        raise InvalidSettingError(setting, problem, remedy)


def _learnables(run: Run, benchmark: Benchmark, entries: Iterable[Entry]) -> Iterator[Learnable]:
    cleaned = run.scope.shows_cleaned
    for found in Survey(run.clips).find_files(benchmark, entries, cleaned=cleaned):
        for clip in (found.clip, found.cleaned):
            if isinstance(clip, Clip):
                yield Learnable(clip, found.entry.origin, found.entry.group)


def _keep_recipe(run: Run, reviewer: str) -> None:
    """Store the recipe; a run that was started with another one is refused."""
    instrument = run.recipe.instrument.instrument
    document = {
        "reviewer": reviewer,
        "instrument": str(instrument),
        "recipe": run.recipe.stored(),
    }
    text = json.dumps(document, indent=2, sort_keys=True) + "\n"
    before = find_recipe(run.place)
    if isinstance(before, UnusableRecipe):
        raise before.error(run.place.uri)
    if before is not None and (before.instrument, before.reviewer) != (instrument, reviewer):
        found = f"{run.place.uri} holds a run of {before.reviewer}"
        setting, problem = "out", f"{found} that asked {before.instrument}"
        remedy = f"Name another folder: this release asks {instrument}. It scores what is there"
        if before.instrument == instrument:
            problem, remedy = found, "Name another folder, or the same recipe"
        raise InvalidSettingError(setting, problem, remedy)
    run.place.put(RECIPE_FILE, text.encode())


def _ledger(run: Run, part: str) -> Path:
    return Folder(run.ledgers).make() / f"{part}.ledger"
