"""From a run's stored answers to scorecards: nobody is asked again."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from unreel.benchmarks.planning import Unaskable
from unreel.core.clip import ClipId, creator_of, setting_of
from unreel.core.estimate import Scorecard
from unreel.core.question import Condition
from unreel.engine.trouble import stores_told
from unreel.evaluate.job import Run
from unreel.evaluate.stored_answers import planned_with_answers, read_answer
from unreel.protocols.protocol import Mode, Row

Rows = Sequence[Row[Any, Any]]
_KINDS: Final = 1024
"""Texts are all different: no more values than this are looked through for an equal one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionScore:
    """One condition of a run: its scorecard, and how many of its questions were never put."""

    condition: Condition
    scorecard: Scorecard
    n_not_asked: int


@stores_told()
def score_run(
    run: Run, *, mode: Mode = "strict", score_texts: Callable[[Rows], Rows] = lambda rows: rows
) -> tuple[ConditionScore, ...]:
    """A scorecard for each condition of `run`, from the answers that are there.

    `score_texts` may fill in how well the answers' words match the truth's: see
    `unreel.evaluate.texts`.
    """
    rows: dict[Condition, list[Row[Any, Any]]] = {c: [] for c in run.scope.conditions}
    missing = dict.fromkeys(run.scope.conditions, 0)
    alike = _Alike()
    for planned, answer in planned_with_answers(run):
        if isinstance(planned, Unaskable):
            for condition in planned.conditions:
                rows[condition].extend(_failed(planned.subject, planned))
        elif answer is None:
            missing[planned.question.condition] += 1
        else:
            outcome = alike(read_answer(planned, answer, mode=mode))
            rows[planned.question.condition].extend(
                Row(
                    subject=planned.question.subject,
                    truth=alike(truth),
                    outcome=outcome,
                    source=alike(planned.source),
                    creator=alike(creator_of(*planned.origins)),
                    setting=alike(setting_of(*planned.origins)),
                    difficulty=alike(planned.difficulty),
                )
                for truth in planned.truths
            )
    score = run.recipe.instrument.score
    return tuple(
        ConditionScore(
            condition=condition,
            scorecard=replace(
                score(score_texts(scored), seed=run.recipe.seed), instrument=run.scope.instrument
            ),
            n_not_asked=missing[condition],
        )
        for condition, scored in rows.items()
    )


def _failed(subject: ClipId, planned: Unaskable) -> Iterator[Row[Any, Any]]:
    for truth in planned.truths:
        yield Row(
            subject=subject,
            truth=truth,
            outcome=planned.failure,
            source=planned.source,
            creator=creator_of(*planned.origins),
            setting=setting_of(*planned.origins),
            difficulty=planned.difficulty,
        )


class _Alike:
    """Gives one object for equal ones: among a hundred thousand labels, few differ."""

    def __init__(self) -> None:
        self._kept: dict[Any, Any] = {}

    def __call__(self, value: Any) -> Any:
        if len(self._kept) < _KINDS:
            return self._kept.setdefault(value, value)
        return self._kept.get(value, value)
