"""From a run's stored answers to scorecards: nobody is asked again."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unreel.benchmarks.entry import Rejected
from unreel.core.clip import ClipId
from unreel.core.estimate import Scorecard
from unreel.core.failure import Failure, FailureReason
from unreel.core.question import Condition
from unreel.evaluate.job import Run
from unreel.evaluate.questions import Planned, Unaskable
from unreel.protocols.protocol import Mode, Reading, Row
from unreel.protocols.space import BoxSpace, declare_space

Rows = Sequence[Row[Any, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionScore:
    """One condition of a run: its scorecard, and how many of its questions were never put."""

    condition: Condition
    scorecard: Scorecard
    n_not_asked: int


def score_run(
    run: Run, *, mode: Mode = "strict", score_texts: Callable[[Rows], Rows] = lambda rows: rows
) -> tuple[ConditionScore, ...]:
    """A scorecard for each condition of `run`, from the answers that are there.

    `score_texts` may fill in how well the answers' words match the truth's: see
    `unreel.evaluate.texts`.
    """
    stored = {row["key"]: row for row in run.answers.rows()} if run.answers.exists() else {}
    reviewer = run.reviewer_name()
    rows: dict[Condition, list[Row[Any, Any]]] = {c: [] for c in run.scope.conditions}
    missing = dict.fromkeys(run.scope.conditions, 0)
    for planned in run.plan():
        if isinstance(planned, Rejected):
            continue  # it has no truth; `evaluate` tells of it
        if isinstance(planned, Unaskable):
            for scored in rows.values():
                scored.extend(_failed(planned.subject, planned))
            continue
        condition = planned.question.condition
        answer = stored.get(planned.question.key(reviewer))
        if answer is None:
            missing[condition] += 1
        else:
            rows[condition].extend(_read(run, planned, answer, mode))
    score = run.recipe.instrument.score
    return tuple(
        ConditionScore(
            condition=condition,
            scorecard=score(score_texts(scored), seed=run.recipe.seed),
            n_not_asked=missing[condition],
        )
        for condition, scored in rows.items()
    )


def _failed(subject: ClipId, planned: Unaskable) -> Iterator[Row[Any, Any]]:
    for truth in planned.truths:
        yield Row(subject=subject, truth=truth, outcome=planned.failure)


def _read(
    run: Run, planned: Planned, answer: Mapping[str, Any], mode: Mode
) -> Iterator[Row[Any, Any]]:
    subject = planned.question.subject
    outcome: Any
    if answer["failure_reason"] is not None:
        outcome = Failure(FailureReason(answer["failure_reason"]), answer["failure_detail"])
    else:
        prompt = planned.question.condition.prompt
        reading = Reading(mode=mode, prompt=prompt, space=_space(planned, answer))
        outcome = run.recipe.instrument.parse(answer["text"], reading)
    for truth in planned.truths:
        yield Row(subject=subject, truth=truth, outcome=outcome)


def _space(planned: Planned, answer: Mapping[str, Any]) -> BoxSpace | None:
    if planned.question.instrument.protocol != "trace":
        return None
    video = planned.clips[0].facts.video
    declared = json.loads(answer["notes"])["box_space"]
    return declare_space(declared, width=video.width, height=video.height)
