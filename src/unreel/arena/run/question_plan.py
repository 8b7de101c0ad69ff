"""Question plan of a season: which questions to send if the budget is too small for all.

A cell is one reviewer and one creator (or the real clips). The information of an answer is about w
(v_r + v_c), where w = p (1 - p) is the variance of the answer, and v_r and v_c are the variances of
the reviewer's ability and the creator's realism. The cell with the most information is next. Within
it the clip of the scene with the fewest questions comes first, so that no scene dominates the
season.
"""

import heapq
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from unreel.arena.answers.answer_table import SAID_GENERATED, SILENT, SeasonAnswerTable
from unreel.arena.season.clip_set import open_season_clip_facts_table
from unreel.arena.season.folder import PLAN, EnteredReviewer, SeasonFolder
from unreel.benchmarks.pairing import BETWEEN
from unreel.benchmarks.questions import PlannedQuestion
from unreel.core.chunks import iter_chunks
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidValueError
from unreel.core.input_files import parse_json_object
from unreel.engine.clip_facts import StoredClipFacts
from unreel.engine.pending_questions import PendingQuestionFilter
from unreel.engine.storage_access import ClipAccessSettings
from unreel.evaluation.recipe import EvalRecipe
from unreel.evaluation.run_job import NOT_SENT, EvalRun
from unreel.evaluation.stored_recipe import StoredRecipe, find_run_recipe


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SeasonQuestion:
    """One question of a season, reduced to the fields that the question plan needs."""

    reviewer: str
    """Stable name of the reviewer in the season."""
    clip: str
    """Name of the clip, or of the pair, in the season's clip set."""
    condition: str
    """Text of the condition, as in the answers table."""
    answered: bool
    failure: str = ""
    """Reason of a stored failure that is not retried; empty otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonReviewer:
    """A reviewer of the season, with the recipe of its evaluation."""

    entered: EnteredReviewer
    recipe: EvalRecipe

    def run(self, folder: SeasonFolder, access: ClipAccessSettings) -> EvalRun:
        """Return the evaluation run that stores this reviewer's answers in the season's folder."""
        root = folder.run(self.entered.folder)
        return EvalRun(
            place=root, recipe=self.recipe, access=access, ledgers=root.path, accept_changed=True
        )


def iter_reviewer_questions(
    reviewer: SeasonReviewer,
    folder: SeasonFolder,
    access: ClipAccessSettings,
    *,
    retry: Collection[str] = (),
) -> Iterator[SeasonQuestion]:
    """Yield every question for one reviewer about the season's clips, in the order of the benchmark.

    A question that failed for a reason in `retry` counts as unanswered.

    Raises:
        UnreelError: The benchmark has no question.
    """
    run = reviewer.run(folder, access)
    pending = PendingQuestionFilter(run.answers, NOT_SENT.union(retry))
    stored = find_run_recipe(run.place)
    # A trainable baseline has a name after fitting only; it is not needed before the first answer.
    name = stored.reviewer if isinstance(stored, StoredRecipe) else None
    plan = run.plan(StoredClipFacts(open_season_clip_facts_table(folder)))
    questions = (q for q in plan if isinstance(q, PlannedQuestion))
    for chunk in iter_chunks(questions):
        keys = ["" if name is None else q.question.key(name) for q in chunk]
        states = run.answers.held([key for key in keys if key])
        for planned, key, is_due in zip(chunk, keys, pending.are_due(keys), strict=True):
            yield SeasonQuestion(
                reviewer=reviewer.entered.name,
                clip=planned.name,
                condition=str(planned.question.condition),
                answered=not is_due,
                failure="" if is_due else states[key].reason or "",
            )


def has_all_shown_clips(clip: str, clips: Collection[str]) -> bool:
    """Return whether `clips` contains `clip`, or both of its clips if it names a pair."""
    return clip in clips or all(name in clips for name in clip.split(BETWEEN))


ORDER = "most information first: w (v_r + v_c) with w = p (1 - p), the clip of the scene asked about least first"
_PRIOR = 4.0
"""Prior variance of an ability or a realism, on the logit scale."""
_PSEUDO = 1.0

Floats = npt.NDArray[np.float64]
_Turn = tuple[int, str, SeasonQuestion]
"""Number of questions about the scene when the heap entry was made, random tie-break, and question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPlan:
    """Questions that fit the budget, in order, and the number of postponed questions by reviewer."""

    seed: int
    basis: str
    """Hash of the inputs; equal entrants, clips and budget give the same plan."""
    n_due: int
    """Number of questions without an answer when the plan was made."""
    chosen: tuple[tuple[str, str, str], ...]
    """Reviewer, condition and clip of each selected question, most informative first."""
    left: Mapping[str, int] = field(default_factory=dict)
    """Number of questions that are not sent, by reviewer."""

    def wants(self, reviewer: str) -> frozenset[tuple[str, str]]:
        """Return the condition and the clip of each planned question for `reviewer`."""
        return frozenset((how, clip) for who, how, clip in self.chosen if who == reviewer)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerCreatorAnswerCounts:
    """Numbers of stored answers by reviewer and creator: answers "generated", and all answers."""

    caught: Mapping[tuple[str, str], int] = field(default_factory=dict)
    answered: Mapping[tuple[str, str], int] = field(default_factory=dict)


def count_stored_answers(
    answer_tables: Iterable[SeasonAnswerTable], titles: Mapping[str, str]
) -> ReviewerCreatorAnswerCounts:
    """Count answers by reviewer and creator; `titles` maps stable names to the tables' titles."""
    named = {title: name for name, title in titles.items()}
    caught, answered = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for answers in answer_tables:
        read, sources = answers.said != SILENT, answers.clips.sources
        cells = answers.reviewer[read] * len(sources) + answers.clips.source[answers.clip[read]]
        counts = np.bincount(cells)
        says_generated = np.bincount(cells, weights=answers.said[read] == SAID_GENERATED)
        for at in np.flatnonzero(counts):
            who, whose = divmod(int(at), len(sources))
            cell = named[answers.reviewers[who]], sources[whose]
            answered[cell] += int(counts[at])
            caught[cell] += int(says_generated[at])
    return ReviewerCreatorAnswerCounts(caught=caught, answered=answered)


def choose_informative_questions(
    questions: Sequence[SeasonQuestion],
    limit: int,
    *,
    makers: Mapping[str, str],
    scenes: Mapping[str, str],
    counts: ReviewerCreatorAnswerCounts,
    seed: int,
) -> list[tuple[str, str, str]]:
    """Choose at most `limit` unanswered questions, the most informative first.

    Args:
        questions: All questions of the season.
        limit: Maximum number of questions.
        makers: Creator of each clip, by clip name.
        scenes: Scene of each clip, by clip name.
        counts: Numbers of stored answers.
        seed: Seed of the order among equal questions.
    """
    due = [question for question in questions if not question.answered]
    if len(due) <= limit:
        return [(question.reviewer, question.condition, question.clip) for question in due]
    board = _InformationGainTable(due, makers, counts)
    n_asked = Counter(scenes[question.clip] for question in questions if question.answered)
    waiting = _build_question_heaps(due, makers, scenes, n_asked, seed=seed)
    chosen = []
    for _ in range(limit):
        cell = board.next_cell()
        question = _pop_next_question(waiting[cell], scenes, n_asked)
        n_asked[scenes[question.clip]] += 1
        chosen.append((question.reviewer, question.condition, question.clip))
        board.ask(cell, is_last=not waiting[cell])
    return chosen


def _build_question_heaps(
    due_questions: Iterable[SeasonQuestion],
    makers: Mapping[str, str],
    scenes: Mapping[str, str],
    n_asked: Counter[str],
    *,
    seed: int,
) -> dict[tuple[str, str], list[_Turn]]:
    """Build a heap of questions for each cell; the scene with the fewest questions is on top."""
    waiting: defaultdict[tuple[str, str], list[_Turn]] = defaultdict(list)
    for question in due_questions:
        scene = scenes[question.clip]
        lot = digest("turn", str(seed), scene, question.clip, question.condition)
        waiting[question.reviewer, makers[question.clip]].append((n_asked[scene], lot, question))
    for turns in waiting.values():
        heapq.heapify(turns)
    return waiting


def _pop_next_question(
    turns: list[_Turn], scenes: Mapping[str, str], n_asked: Counter[str]
) -> SeasonQuestion:
    """Remove the question of the scene with fewest questions; outdated counts return to the heap."""
    while True:
        count, lot, question = heapq.heappop(turns)
        current = n_asked[scenes[question.clip]]
        if current == count:
            return question
        heapq.heappush(turns, (current, lot, question))


class _InformationGainTable:
    """Information gain of one more answer by reviewer and creator, updated with each chosen question."""

    def __init__(
        self,
        due_questions: Sequence[SeasonQuestion],
        makers: Mapping[str, str],
        counts: ReviewerCreatorAnswerCounts,
    ) -> None:
        self._rows = sorted({question.reviewer for question in due_questions})
        self._columns = sorted({makers[question.clip] for question in due_questions})
        self._row_of = {name: i for i, name in enumerate(self._rows)}
        self._column_of = {name: i for i, name in enumerate(self._columns)}
        shape = len(self._rows), len(self._columns)
        caught, answered = np.zeros(shape), np.zeros(shape)
        for i, who in enumerate(self._rows):
            for j, whom in enumerate(self._columns):
                caught[i, j] = counts.caught.get((who, whom), 0)
                answered[i, j] = counts.answered.get((who, whom), 0)
        self._open = _compute_answer_variance(caught, answered)
        self._rows_know = (self._open * answered).sum(axis=1)
        self._columns_know = (self._open * answered).sum(axis=0)
        self._ended = np.ones(shape, dtype=bool)
        for question in due_questions:
            self._ended[self._place((question.reviewer, makers[question.clip]))] = False
        self._gain = self._tells(slice(None), slice(None))

    def next_cell(self) -> tuple[str, str]:
        """Return the reviewer and creator for which one more answer has the most information."""
        row, column = divmod(int(self._gain.argmax()), len(self._columns))
        return self._rows[row], self._columns[column]

    def ask(self, cell: tuple[str, str], *, is_last: bool) -> None:
        """Update information gains as if one question in `cell` were answered; close it with `is_last`."""
        row, column = self._place(cell)
        self._rows_know[row] += self._open[row, column]
        self._columns_know[column] += self._open[row, column]
        self._ended[row, column] = is_last
        self._gain[row] = self._tells(slice(row, row + 1), slice(None))
        self._gain[:, column : column + 1] = self._tells(slice(None), slice(column, column + 1))

    def _tells(self, rows: slice, columns: slice) -> Floats:
        """Return the information gain of one more answer in these cells; -1 for cells without a question."""
        by_row, by_column = (
            1 / (1 / _PRIOR + know) for know in (self._rows_know[rows], self._columns_know[columns])
        )
        gain = self._open[rows, columns] * (by_row[:, None] + by_column[None, :])
        return np.where(self._ended[rows, columns], -1.0, gain)

    def _place(self, cell: tuple[str, str]) -> tuple[int, int]:
        return self._row_of[cell[0]], self._column_of[cell[1]]


def _compute_answer_variance(caught: Floats, answered: Floats) -> Floats:
    """Return the variance p (1 - p) of an answer, with p shrunk to one half for few answers."""
    p = (caught + _PSEUDO) / (answered + 2 * _PSEUDO)
    return np.asarray(p * (1 - p))


def write_question_plan(folder: SeasonFolder, plan: QuestionPlan) -> None:
    """Write the question plan as JSON into the season's folder."""
    document: dict[str, Any] = {
        "order": ORDER,
        "seed": plan.seed,
        "basis": plan.basis,
        "n_due": plan.n_due,
        "n_chosen": len(plan.chosen),
        "left": dict(sorted(plan.left.items())),
        "chosen": [
            {"reviewer": who, "condition": how, "clip": clip} for who, how, clip in plan.chosen
        ],
    }
    folder.write_json(PLAN, document)


def read_question_plan(folder: SeasonFolder) -> QuestionPlan | None:
    """Return the question plan in the season's folder; `None` if it is missing or unreadable."""
    try:
        stored = parse_json_object(folder.place.read(PLAN))
        return QuestionPlan(
            seed=int(stored["seed"]),
            basis=str(stored["basis"]),
            n_due=int(stored["n_due"]),
            chosen=tuple(
                (str(row["reviewer"]), str(row["condition"]), str(row["clip"]))
                for row in stored["chosen"]
            ),
            left={str(who): int(n) for who, n in stored["left"].items()},
        )
    except (
        FileNotFoundError,
        InvalidValueError,
        LookupError,
        TypeError,
        AttributeError,
        ValueError,
    ):
        return None


def hash_question_plan_inputs(*parts: object) -> str:
    """Return the hash of the inputs of a question plan; equal inputs give the same plan."""
    return digest("plan", *(json.dumps(part, sort_keys=True, default=str) for part in parts))
