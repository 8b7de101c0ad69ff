"""From a run's stored answers to scorecards: nobody is asked again."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from unreel.benchmarks.planning import Planned, Unaskable
from unreel.core.clip import creator_of, setting_of
from unreel.core.estimate import Scorecard
from unreel.core.question import Condition
from unreel.engine.trouble import stores_told
from unreel.evaluate.job import Run
from unreel.evaluate.kept_rows import KeptRows
from unreel.evaluate.stored_answers import planned_with_answers, read_answer
from unreel.protocols.protocol import Mode, Row

Rows = Sequence[Row[Any, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionScore:
    """One condition of a run: its scorecard, and how many of its questions were never put."""

    condition: Condition
    scorecard: Scorecard
    n_not_asked: int


@stores_told()
def score_run(
    run: Run, *, mode: Mode = "strict", score_texts: Callable[[Rows], Rows] | None = None
) -> tuple[ConditionScore, ...]:
    """A scorecard for each condition of `run`, from the answers that are there.

    `score_texts` may fill in how well the answers' words match the truth's: see
    `unreel.evaluate.texts`.
    """
    packed = run.recipe.instrument.packed if score_texts is None else None
    rows = {condition: KeptRows(packed) for condition in run.scope.conditions}
    missing = dict.fromkeys(run.scope.conditions, 0)
    # Of a copy, so that where keys lie in its tables is forgotten before figures are made.
    for _, condition, row in read_rows(replace(run), mode=mode):
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
            ),
            n_not_asked=missing[condition],
        )
        for condition, scored in rows.items()
    )


def read_rows(run: Run, *, mode: Mode) -> Iterator[tuple[str, Condition, Row[Any, Any] | None]]:
    """Yield the scored items in plan order: the entry's name, the condition, and each of its rows.

    A question that was not put has no row: it comes once, with `None`.
    """
    for planned, answer in planned_with_answers(run):
        if isinstance(planned, Unaskable):
            for condition in planned.conditions:
                for row in _rows(planned, planned.subject, planned.failure):
                    yield planned.name, condition, row
            continue
        question = planned.question
        if answer is None:
            yield planned.name, question.condition, None
            continue
        said = read_answer(planned, answer, mode=mode)
        for row in _rows(planned, question.subject, said):
            yield planned.name, question.condition, row


def _rows(planned: Planned[Any] | Unaskable, subject: Any, outcome: Any) -> Iterator[Row[Any, Any]]:
    creator, setting = creator_of(*planned.origins), setting_of(*planned.origins)
    for truth in planned.truths:
        yield Row(
            subject=subject,
            truth=truth,
            outcome=outcome,
            source=planned.source,
            creator=creator,
            setting=setting,
            difficulty=planned.difficulty,
        )
