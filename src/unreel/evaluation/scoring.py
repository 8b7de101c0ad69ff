"""Scorecards from a run's stored answers; no question is sent."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from unreel.benchmarks.questions import PlannedQuestion, UnreadableClip
from unreel.core.clip import get_creator, get_setting
from unreel.core.estimate import Scorecard
from unreel.core.question import Condition
from unreel.engine.storage_errors import translate_store_errors
from unreel.evaluation.run_job import EvalRun
from unreel.evaluation.scored_columns import KeptRows
from unreel.evaluation.stored_answers import iter_questions_with_answers, read_answer
from unreel.protocols.protocol import Mode, ScoredQuestion

Rows = Sequence[ScoredQuestion[Any, Any]]
OTHER_NAMES: Final = "other names"
_MOST_NAMES: Final = 20
"""Model names that are counted each: a server could give a new one with each answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionScore:
    """One condition of a run: its scorecard, and the number of questions that were never sent."""

    condition: Condition
    scorecard: Scorecard
    n_not_asked: int


@translate_store_errors()
def score_run(
    run: EvalRun, *, mode: Mode = "strict", score_texts: Callable[[Rows], Rows] | None = None
) -> tuple[ConditionScore, ...]:
    """Compute a scorecard for each condition of `run`, from the stored answers.

    The optional callback `score_texts` adds scores for how well the texts of the answers match the
    ground truth: see `unreel.evaluation.explanation_scores`.
    """
    packed = run.recipe.instrument.packed if score_texts is None else None
    rows = {condition: KeptRows(packed) for condition in run.scope.conditions}
    missing = dict.fromkeys(run.scope.conditions, 0)
    others: dict[Condition, Counter[str]] = {each: Counter() for each in run.scope.conditions}

    def count_model(condition: Condition, answer: Mapping[str, Any]) -> None:
        if name := answer.get("answered_by"):
            names = others[condition]
            names[name if name in names or len(names) < _MOST_NAMES else OTHER_NAMES] += 1

    # Of a copy, so that where keys lie in its tables is forgotten before figures are made.
    for _, condition, row in read_rows(replace(run), mode=mode, on_answer=count_model):
        if row is None:
            missing[condition] += 1
        else:
            rows[condition].append(row)
    score = run.recipe.instrument.score
    return tuple(
        ConditionScore(
            condition=condition,
            scorecard=replace(
                score(scored if score_texts is None else score_texts(scored), seed=run.recipe.seed),
                instrument=run.scope.instrument,
                answered_by=dict(others[condition].most_common()),
            ),
            n_not_asked=missing[condition],
        )
        for condition, scored in rows.items()
    )


def read_rows(
    run: EvalRun,
    *,
    mode: Mode,
    on_answer: Callable[[Condition, Mapping[str, Any]], None] = lambda _condition, _answer: None,
) -> Iterator[tuple[str, Condition, ScoredQuestion[Any, Any] | None]]:
    """Yield the scored items in plan order: the entry's name, the condition, and each of its rows.

    A question that was not put has no row: it comes once, with `None`. `on_answer` receives each stored answer.
    """
    for planned, answer in iter_questions_with_answers(run):
        if isinstance(planned, UnreadableClip):
            for condition in planned.conditions:
                for row in _iter_scored_questions(planned, planned.subject, planned.failure):
                    yield planned.name, condition, row
            continue
        question = planned.question
        if answer is None:
            yield planned.name, question.condition, None
            continue
        on_answer(question.condition, answer)
        said = read_answer(planned, answer, mode=mode)
        for row in _iter_scored_questions(planned, question.subject, said):
            yield planned.name, question.condition, row


def _iter_scored_questions(
    planned: PlannedQuestion[Any] | UnreadableClip, subject: Any, outcome: Any
) -> Iterator[ScoredQuestion[Any, Any]]:
    creator, setting = get_creator(*planned.origins), get_setting(*planned.origins)
    for truth in planned.truths:
        yield ScoredQuestion(
            subject=subject,
            truth=truth,
            outcome=outcome,
            source=planned.source,
            creator=creator,
            setting=setting,
            difficulty=planned.difficulty,
        )
