"""A run for pages: every question with its ground truth, its answer and the parsed verdict."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from unreel.benchmarks.entry import Entry
from unreel.benchmarks.statistics import BenchmarkStats
from unreel.core.clip import Clip
from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Scorecard
from unreel.core.failure import Failure
from unreel.core.identity import digest_id
from unreel.core.judgement import get_clips
from unreel.core.question import Condition
from unreel.core.small_documents import parse_object
from unreel.evaluation.explanation_scores import ExplanationJudges, load_judge_rulings
from unreel.evaluation.recipe import EvalRecipe
from unreel.evaluation.run_job import EvalRun
from unreel.evaluation.scored_columns import InternedValues, KeptTexts
from unreel.evaluation.scoring import Rows, score_run
from unreel.protocols.protocol import Protocol, ScoredQuestion
from unreel.reviewers.registry import FLOORS
from unreel.stats.label_digests import LabelDigests, digest_label


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSubject:
    """A clip of a benchmark, and the properties of its file."""

    entry: Entry
    clip: Clip | Failure


class StoredAnswers:
    """Columns of the answers' table that a report needs, for the answers of one condition.

    Texts are held as bytes and other values once for all answers that have them.
    """

    TEXTS: ClassVar = ("text", "notes")
    NUMBERS: ClassVar = (
        "failure_reason",
        "latency_us",
        "input_tokens",
        "output_tokens",
        "cost_usd",
    )

    def __init__(self) -> None:
        self._shown = bytearray()
        self.columns: dict[str, KeptTexts | InternedValues[Any]] = {
            name: KeptTexts() for name in self.TEXTS
        }
        self.columns |= {name: InternedValues[Any]() for name in self.NUMBERS}

    def append(self, shown: str, row: Mapping[str, Any]) -> None:
        """Add an answer about a clip id, or about both ids of a pair joined with `+`."""
        self._shown += digest_label(shown)
        for name in self.TEXTS:
            self.columns[name].append(row[name] or "")
        for name in self.NUMBERS:
            self.columns[name].append(row[name])

    def find(self, shown: Iterable[str]) -> Iterator["Mapping[str, Any]"]:
        """Return the last answer about each of `shown`; an empty mapping if there is none."""
        known, wanted = LabelDigests(), bytearray()
        number = known.number(self._shown)
        last = np.zeros(len(known), np.int64)
        np.maximum.at(last, number, np.arange(len(number)))
        for each in shown:
            wanted += digest_label(each)
        for place in known.number(wanted).tolist():
            yield StoredAnswer(self, int(last[place])) if place < len(last) else {}


class StoredAnswer(Mapping[str, Any]):
    """Values of one row of the answers' table, read from their columns when they are used."""

    __slots__ = ("_answers", "_place")

    def __init__(self, answers: StoredAnswers, index: int) -> None:
        self._answers, self._place = answers, index

    def __getitem__(self, name: str) -> Any:
        return self._answers.columns[name][self._place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._answers.columns)

    def __len__(self) -> int:
        return len(self._answers.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunItem:
    """One question of a run: its clips, the rows that score it, and the stored answer."""

    key: str
    """Id of the clip, or both of a pair joined with `+`."""
    subjects: tuple[ReportSubject, ...]
    rows: Rows
    """One for each truth; all have the same outcome."""
    stored: Mapping[str, Any]
    """What the answers' table holds of it; empty where the question could not be put."""

    @property
    def outcome(self) -> Any:
        """Return the verdict, or the failure."""
        return self.rows[0].outcome

    @property
    def creator(self) -> str | None:
        """Return the creator of the generated clip; `None` if only real ones are shown."""
        for subject in self.subjects:
            creator: str | None = getattr(subject.entry.origin, "creator", None)
            if creator is not None:
                return creator
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportEntrant:
    """One reviewer of one run under one condition, with all that it answered."""

    reviewer: str
    is_floor: bool
    condition: Condition
    instrument: Protocol[Any, Any]
    benchmark: str
    """Path of the benchmark."""
    extent: str
    """Part of it, as text; "" for all."""
    seed: int
    judged: bool
    """Whether a judge of explanations was named."""
    card: Scorecard
    n_not_asked: int
    n_rejected: int
    """Rows of the benchmark that cannot be used."""
    items: tuple[RunItem, ...]
    fingerprint: str = ""
    """Of the benchmark; "" where it was not read to its end."""

    @property
    def rows(self) -> list[ScoredQuestion[Any, Any]]:
        """Return the rows of all items."""
        return [row for item in self.items for row in item.rows]

    @property
    def protocol(self) -> str:
        """Name of the protocol."""
        return self.instrument.instrument.protocol


def read_run(run: EvalRun, *, judge: str | None = None) -> tuple[ReportEntrant, ...]:
    """Return an entrant for each condition of `run`. No question is sent.

    `judge` names the model of the stored rulings of `unreel score --judge`; without it explanations
    stay unmeasured.
    """
    read: list[Rows] = []
    scores = score_run(
        run, score_texts=partial(_append_rows, read, _find_explanation_judges(run, judge))
    )
    reading = BenchmarkStats()
    subjects = _index_subjects(run, reading)
    stored = _group_stored_answers(run)
    recipe = run.recipe
    known = reading.identity
    return tuple(
        ReportEntrant(
            reviewer=run.reviewer_name(),
            is_floor=recipe.reviewer.model in FLOORS,
            condition=score.condition,
            instrument=replace(recipe.instrument, instrument=run.scope.instrument),
            benchmark=str(run.benchmark_path.resolve()),
            extent=_format_extent(recipe),
            seed=recipe.seed,
            judged=judge is not None,
            card=score.scorecard,
            n_not_asked=score.n_not_asked,
            n_rejected=reading.n_rejected,
            items=tuple(_iter_run_items(rows, subjects, stored[str(score.condition)])),
            fingerprint=known.fingerprint if known else "",
        )
        for score, rows in zip(scores, read, strict=True)
    )


def _append_rows(read: list[Rows], judges: ExplanationJudges | None, rows: Rows) -> Rows:
    read.append(judges(rows) if judges else rows)
    return read[-1]


def _iter_run_items(
    rows: Rows, subjects: Mapping[str, ReportSubject], stored: StoredAnswers
) -> Iterator[RunItem]:
    by_key: dict[str, tuple[ScoredQuestion[Any, Any], ...]] = {}
    for row in rows:
        key = "+".join(get_clips(row.subject))
        clip = subjects[key].clip if key in subjects else None
        if isinstance(clip, Clip):  # its id is in memory once
            key, row = clip.id, replace(row, subject=clip.id)  # noqa: PLW2901
        by_key[key] = (*by_key.get(key, ()), row)
    for (key, group), answer in zip(by_key.items(), stored.find(by_key), strict=True):
        shown = tuple(subjects[clip] for clip in get_clips(group[0].subject))
        yield RunItem(key=key, subjects=shown, rows=group, stored=answer)


def _index_subjects(run: EvalRun, reading: BenchmarkStats) -> dict[str, ReportSubject]:
    """Return every clip by the id in its rows; of two entries with the same bytes, the first is kept."""
    benchmark = run.benchmark()
    subjects: dict[str, ReportSubject] = {}
    entries = run.entries(benchmark, reading)
    cleaned = run.scope.shows_cleaned
    for surveyed in run.survey(benchmark).find_files(benchmark, entries, cleaned=cleaned):
        entry = surveyed.entry
        for clip in (surveyed.clip, surveyed.cleaned):
            if clip is not None:
                key = digest_id("entry", entry.name) if isinstance(clip, Failure) else clip.id
                subjects.setdefault(key, ReportSubject(entry=entry, clip=clip))
    return subjects


def _group_stored_answers(run: EvalRun) -> Mapping[str, StoredAnswers]:
    """Return the answers by condition."""
    answers = {str(condition): StoredAnswers() for condition in run.recipe.conditions}
    reviewer, instrument = run.reviewer_name(), run.scope.instrument
    for row in run.answers.rows() if run.answers.exists() else ():
        mine = (row["reviewer"], row["protocol"], row["protocol_version"]) == (
            reviewer,
            instrument.protocol,
            instrument.version,
        )
        if mine and row["condition"] in answers:
            shown = [row["clip"]] if row["second"] is None else [row["clip"], row["second"]]
            answers[row["condition"]].append("+".join(shown), row)
    return answers


def _format_extent(recipe: EvalRecipe) -> str:
    parts = [] if recipe.split is None else [f"split {recipe.split}"]
    if recipe.limit is not None and recipe.choice == "first":
        parts.append(f"first {recipe.limit} clips")
    elif recipe.limit is not None:
        parts.append(f"{recipe.limit} clips drawn by seed {recipe.seed}")
    return ", ".join(parts)


def _find_explanation_judges(run: EvalRun, model: str | None) -> ExplanationJudges | None:
    if model is None or "explanation" not in run.recipe.instrument.figures:
        return None
    return ExplanationJudges([load_judge_rulings(model, run)], run.recipe.seed)


def notes_of(item: RunItem) -> Mapping[str, Any]:
    """Return the stored notes of the answer: the coordinate space of boxes and the shown frames."""
    text = item.stored.get("notes")
    try:
        return parse_object(text.encode()) if text else {}
    except InvalidValueError:
        return {}  # a damaged row: its answer is told as one


def shared_boards(entrants: Sequence[ReportEntrant]) -> list[list[ReportEntrant]]:
    """Group entrants that answered the same questions; the input order is kept."""
    boards: dict[tuple[str, str, str], list[ReportEntrant]] = {}
    for entrant in entrants:
        place = (str(entrant.instrument.instrument), entrant.benchmark, entrant.extent)
        boards.setdefault(place, []).append(entrant)
    return list(boards.values())
