"""Scorecards of a run from its stored answers, which are parsed again; no question is sent."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from unreel.benchmarks.entry import Rejected
from unreel.benchmarks.questions import PlannedQuestion, UnreadableClip
from unreel.catalogue.owner_prompts import parse_answer
from unreel.core.answer import digest_reply_text
from unreel.core.chunks import iter_chunks
from unreel.core.clip import Clip, get_first_creator, get_first_creator_setting
from unreel.core.errors import UnreelError
from unreel.core.estimate import Scorecard
from unreel.core.failure import Failure, build_damaged_row_failure, parse_stored_failure
from unreel.core.input_files import parse_json_object
from unreel.core.question import Condition
from unreel.core.verdict import Verdict
from unreel.engine.location import translate_store_errors
from unreel.evaluation.run_job import EvalRun
from unreel.evaluation.scored_columns import ScoredQuestionColumns
from unreel.protocols.protocol import Mode, ScoredQuestion, get_protocol

_USUAL_NOTES = 512


def iter_questions_with_answers(
    run: EvalRun,
) -> Iterator[tuple[PlannedQuestion[Clip] | UnreadableClip, Mapping[str, Any] | None]]:
    """Yield each planned question of `run` with its stored answer, if any; texts are read in chunks.

    Raise `UnreadableSourceError` if the table of answers contains a key twice.
    """
    answers = run.answers
    answers.check()
    reviewer = run.reviewer_name()
    # Rows without ground truth are skipped here; `evaluate` reports them.
    plan = (planned for planned in run.plan() if not isinstance(planned, Rejected))
    for chunk in iter_chunks(plan):
        keys = [
            planned.question.key(reviewer) if isinstance(planned, PlannedQuestion) else ""
            for planned in chunk
        ]
        stored = {row["key"]: row for row in answers.get([key for key in keys if key])}
        for planned, key in zip(chunk, keys, strict=True):
            yield planned, stored.get(key)


def parse_stored_answer(
    planned: PlannedQuestion[Clip], answer: Mapping[str, Any], *, mode: Mode
) -> Verdict | Failure:
    """Parse the stored answer to the question `planned`; return its verdict, or the failure."""
    if answer["failure_reason"] is not None:
        return parse_stored_failure(answer["failure_reason"], answer["failure_detail"])
    question = planned.question
    if answer["text"] is None:
        return build_damaged_row_failure("no text of an answer")
    if answer.get("reply_digest") not in (None, digest_reply_text(answer["text"])):
        return build_damaged_row_failure("the text differs from the received reply")
    instrument = get_protocol(question.instrument.protocol)
    notes, box_space = answer["notes"] or "", None
    try:
        if instrument.needs_box_space:
            parse = _parse_noted_box_space
            box_space = parse(notes) if len(notes) <= _USUAL_NOTES else parse.__wrapped__(notes)
        return parse_answer(
            answer["text"],
            instrument,
            prompt=question.condition.prompt,
            mode=mode,
            box_space=box_space,
            size=planned.clips[0].size,
        )
    except (UnreelError, LookupError) as error:
        return build_damaged_row_failure(f"the notes name no space of boxes ({error})")


@lru_cache(maxsize=1024)  # the notes of one reviewer rarely differ
def _parse_noted_box_space(notes: str) -> str:
    return str(parse_json_object(notes.encode())["box_space"])


Rows = Sequence[ScoredQuestion[Any, Any]]
OTHER_NAMES = "other names"
_MOST_NAMES = 20
"""Maximum number of model names that are counted separately: a server could return a new one per answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionScore:
    """Scorecard of a run under one condition, and the number of questions that were never sent."""

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
    rows = {condition: ScoredQuestionColumns(packed) for condition in run.scope.conditions}
    missing = dict.fromkeys(run.scope.conditions, 0)
    model_counts: dict[Condition, Counter[str]] = {each: Counter() for each in run.scope.conditions}

    def count_model(condition: Condition, answer: Mapping[str, Any]) -> None:
        if name := answer.get("answered_by"):
            names = model_counts[condition]
            names[name if name in names or len(names) < _MOST_NAMES else OTHER_NAMES] += 1

    # A copy of the run, so that its cached key indexes are freed before the metrics are computed.
    for _, condition, row in iter_scored_rows(replace(run), mode=mode, on_answer=count_model):
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
                answered_by=dict(model_counts[condition].most_common()),
            ),
            n_not_asked=missing[condition],
        )
        for condition, scored in rows.items()
    )


def iter_scored_rows(
    run: EvalRun,
    *,
    mode: Mode,
    on_answer: Callable[[Condition, Mapping[str, Any]], None] = lambda _condition, _answer: None,
) -> Iterator[tuple[str, Condition, ScoredQuestion[Any, Any] | None]]:
    """Yield scored questions in plan order with entry and condition; unsent ones once with `None`."""
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
        outcome = parse_stored_answer(planned, answer, mode=mode)
        for row in _iter_scored_questions(planned, question.subject, outcome):
            yield planned.name, question.condition, row


def _iter_scored_questions(
    planned: PlannedQuestion[Any] | UnreadableClip, subject: Any, outcome: Any
) -> Iterator[ScoredQuestion[Any, Any]]:
    creator = get_first_creator(*planned.origins)
    setting = get_first_creator_setting(*planned.origins)
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
