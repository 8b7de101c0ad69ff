"""Data of a run for report pages: each question with its ground truth, answer and parsed verdict."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from unreel.benchmarks.entry import Entry
from unreel.benchmarks.statistics import BenchmarkStats
from unreel.core.clip import Clip
from unreel.core.content_ids import compute_placeholder_clip_id
from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Scorecard
from unreel.core.failure import Failure
from unreel.core.input_files import parse_json_object
from unreel.core.judgement import list_subject_clips
from unreel.core.question import Condition
from unreel.evaluation.explanation_scores import ExplanationJudges, build_stored_rulings_judge
from unreel.evaluation.run_job import EvalRun
from unreel.evaluation.scored_columns import InternedTextColumn, InternedValueColumn
from unreel.evaluation.scoring import Rows, score_run
from unreel.protocols.protocol import Protocol, ScoredQuestion
from unreel.reviewers.registry import FLOORS
from unreel.stats.label_digests import LabelDigestList, digest_label


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportClip:
    """Clip of a benchmark in a report, and the properties of its file or the failure to read it."""

    entry: Entry
    clip: Clip | Failure


class StoredAnswerColumns:
    """Compact answers under one condition: texts as bytes, equal values of other columns stored once."""

    TEXTS: ClassVar = ("text", "notes")
    NUMBERS: ClassVar = (
        "failure_reason",
        "latency_us",
        "input_tokens",
        "output_tokens",
        "cost_usd",
    )

    def __init__(self) -> None:
        self._keys = bytearray()
        self.columns: dict[str, InternedTextColumn | InternedValueColumn[Any]] = {
            name: InternedTextColumn() for name in self.TEXTS
        }
        self.columns |= {name: InternedValueColumn[Any]() for name in self.NUMBERS}

    def append(self, key: str, row: Mapping[str, Any]) -> None:
        """Add a stored answer; `key` is the clip id, or both ids of a pair joined with `+`."""
        self._keys += digest_label(key)
        for name in self.TEXTS:
            self.columns[name].append(row[name] or "")
        for name in self.NUMBERS:
            self.columns[name].append(row[name])

    def find(self, keys: Iterable[str]) -> Iterator["Mapping[str, Any]"]:
        """Yield the last answer about each of `keys`; an empty mapping if there is none."""
        stored, digests = LabelDigestList(), bytearray()
        numbers = stored.number(self._keys)
        last = np.zeros(len(stored), np.int64)
        np.maximum.at(last, numbers, np.arange(len(numbers)))
        for key in keys:
            digests += digest_label(key)
        for i in stored.number(digests).tolist():
            yield StoredAnswerRow(self, int(last[i])) if i < len(last) else {}


class StoredAnswerRow(Mapping[str, Any]):
    """Stored answer as a mapping, whose values are read from `StoredAnswerColumns` on access."""

    __slots__ = ("_answers", "_index")

    def __init__(self, answers: StoredAnswerColumns, index: int) -> None:
        self._answers, self._index = answers, index

    def __getitem__(self, name: str) -> Any:
        return self._answers.columns[name][self._index]

    def __iter__(self) -> Iterator[str]:
        return iter(self._answers.columns)

    def __len__(self) -> int:
        return len(self._answers.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredQuestion:
    """One question of a run: the clips, the rows that score it, and the stored answer."""

    key: str
    """Id of the clip, or both ids of a pair joined with `+`."""
    subjects: tuple[ReportClip, ...]
    rows: Rows
    """Scored rows, one for each known truth; all have the same outcome."""
    stored: Mapping[str, Any]
    """Row of the answers' table; empty if the question could not be sent."""

    @property
    def outcome(self) -> Any:
        """Return the parsed verdict of the answer, or the failure."""
        return self.rows[0].outcome

    @property
    def creator(self) -> str | None:
        """Return the creator of the question's generated clip; `None` if all its clips are real."""
        for subject in self.subjects:
            creator: str | None = getattr(subject.entry.origin, "creator", None)
            if creator is not None:
                return creator
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportEntrant:
    """Reviewer of one run under one condition, with its questions, answers and scorecard."""

    reviewer: str
    is_floor: bool
    condition: Condition
    instrument: Protocol[Any, Any]
    benchmark: str
    """Path of the benchmark."""
    extent: str
    """Part of the benchmark, as text; "" for all."""
    seed: int
    judged: bool
    """Whether a judge model of explanations was given."""
    card: Scorecard
    n_pending: int
    n_rejected: int
    """Number of benchmark rows that cannot be used."""
    items: tuple[AnsweredQuestion, ...]
    fingerprint: str = ""
    """Fingerprint of the benchmark; "" if it was not read to its end."""

    @property
    def rows(self) -> list[ScoredQuestion[Any, Any]]:
        return [row for item in self.items for row in item.rows]

    @property
    def protocol(self) -> str:
        return self.instrument.instrument.protocol


def read_report_entrants(run: EvalRun, *, judge: str | None = None) -> tuple[ReportEntrant, ...]:
    """Return an entrant per condition, without questions; `judge` is the model of the stored rulings, if any."""
    judges = None
    if judge is not None and "explanation" in run.recipe.instrument.figures:
        judges = ExplanationJudges([build_stored_rulings_judge(judge, run)], run.recipe.seed)
    read: list[Rows] = []

    def score_and_collect_rows(rows: Rows) -> Rows:
        read.append(judges(rows) if judges else rows)
        return read[-1]

    scores = score_run(run, score_texts=score_and_collect_rows)
    stats = BenchmarkStats()
    benchmark = run.benchmark()
    subjects: dict[str, ReportClip] = {}
    entries = run.entries(benchmark, stats)
    cleaned = run.scope.shows_cleaned
    for files in run.survey().find_files(benchmark, entries, cleaned=cleaned):
        entry = files.entry
        for clip in (files.clip, files.cleaned):
            if clip is not None:
                key = (
                    compute_placeholder_clip_id("entry", entry.name)
                    if isinstance(clip, Failure)
                    else clip.id
                )
                subjects.setdefault(key, ReportClip(entry=entry, clip=clip))
    answers = {str(condition): StoredAnswerColumns() for condition in run.recipe.conditions}
    reviewer, protocol = run.reviewer_name(), run.scope.instrument
    for row in run.answers.rows() if run.answers.exists() else ():
        is_own = (row["reviewer"], row["protocol"], row["protocol_version"]) == (
            reviewer,
            protocol.protocol,
            protocol.version,
        )
        if is_own and row["condition"] in answers:
            clip_ids = [row["clip"]] if row["second"] is None else [row["clip"], row["second"]]
            answers[row["condition"]].append("+".join(clip_ids), row)
    recipe = run.recipe
    parts = [] if recipe.split is None else [f"split {recipe.split}"]
    if recipe.limit is not None and recipe.choice == "first":
        parts.append(f"first {recipe.limit} clips")
    elif recipe.limit is not None:
        parts.append(f"{recipe.limit} clips drawn by seed {recipe.seed}")
    identity = stats.identity
    return tuple(
        ReportEntrant(
            reviewer=reviewer,
            is_floor=recipe.reviewer.model in FLOORS,
            condition=score.condition,
            instrument=replace(recipe.instrument, instrument=protocol),
            benchmark=str(run.benchmark_path.resolve()),
            extent=", ".join(parts),
            seed=recipe.seed,
            judged=judge is not None,
            card=score.scorecard,
            n_pending=score.n_not_asked,
            n_rejected=stats.n_rejected,
            items=tuple(_iter_run_items(rows, subjects, answers[str(score.condition)])),
            fingerprint=identity.fingerprint if identity else "",
        )
        for score, rows in zip(scores, read, strict=True)
    )


def _iter_run_items(
    rows: Rows, subjects: Mapping[str, ReportClip], stored: StoredAnswerColumns
) -> Iterator[AnsweredQuestion]:
    by_key: dict[str, tuple[ScoredQuestion[Any, Any], ...]] = {}
    for row in rows:
        key = "+".join(list_subject_clips(row.subject))
        clip = subjects[key].clip if key in subjects else None
        if isinstance(clip, Clip):  # share one copy of the id
            key, row = clip.id, replace(row, subject=clip.id)  # noqa: PLW2901
        by_key[key] = (*by_key.get(key, ()), row)
    for (key, group), answer in zip(by_key.items(), stored.find(by_key), strict=True):
        clips = tuple(subjects[clip] for clip in list_subject_clips(group[0].subject))
        yield AnsweredQuestion(key=key, subjects=clips, rows=group, stored=answer)


def parse_answer_notes(question: AnsweredQuestion) -> Mapping[str, Any]:
    """Return the stored notes of the answer: the coordinate space of boxes and the shown frames."""
    text = question.stored.get("notes")
    try:
        return parse_json_object(text.encode()) if text else {}
    except InvalidValueError:
        return {}  # a damaged row: its answer is reported as damaged


def group_entrants_by_questions(entrants: Sequence[ReportEntrant]) -> list[list[ReportEntrant]]:
    """Group entrants that answered the same questions; the input order is kept."""
    boards: dict[tuple[str, str, str], list[ReportEntrant]] = {}
    for entrant in entrants:
        questions = (str(entrant.instrument.instrument), entrant.benchmark, entrant.extent)
        boards.setdefault(questions, []).append(entrant)
    return list(boards.values())
