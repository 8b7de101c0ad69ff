"""Parse stored answers again. Sends nothing."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from unreel.benchmarks.entry import Rejected
from unreel.benchmarks.questions import PlannedQuestion, UnreadableClip
from unreel.core.answer import digest_text
from unreel.core.chunks import iter_chunks
from unreel.core.clip import Clip
from unreel.core.errors import UnreelError
from unreel.core.failure import Failure, build_damaged_row_failure, read_failure
from unreel.core.small_documents import parse_object
from unreel.core.verdict import Verdict
from unreel.evaluation.run_job import EvalRun
from unreel.protocols.parse_answer import read_text
from unreel.protocols.protocol import Mode, get_protocol

_USUAL_NOTES: Final = 512


def iter_questions_with_answers(
    run: EvalRun,
) -> Iterator[tuple[PlannedQuestion[Clip] | UnreadableClip, Mapping[str, Any] | None]]:
    """Yield the planned questions with their stored answers; texts are released chunk by chunk.

    Raises:
        UnreadableSourceError: The table holds a key twice.
    """
    answers = run.answers
    answers.check()
    reviewer = run.reviewer_name()
    # What has no truth is left out here; `evaluate` tells of it.
    plan = (planned for planned in run.plan() if not isinstance(planned, Rejected))
    for chunk in iter_chunks(plan):
        keys = [
            planned.question.key(reviewer) if isinstance(planned, PlannedQuestion) else ""
            for planned in chunk
        ]
        stored = {row["key"]: row for row in answers.get([key for key in keys if key])}
        for planned, key in zip(chunk, keys, strict=True):
            yield planned, stored.get(key)


def read_answer(
    planned: PlannedQuestion[Clip], answer: Mapping[str, Any], *, mode: Mode
) -> Verdict | Failure:
    """Return the verdict in the stored answer to `planned`, or the failure."""
    if answer["failure_reason"] is not None:
        return read_failure(answer["failure_reason"], answer["failure_detail"])
    question = planned.question
    if answer["text"] is None:
        return build_damaged_row_failure("no text of an answer")
    if answer.get("reply_digest") not in (None, digest_text(answer["text"])):
        return build_damaged_row_failure("its text is not the reply that was received")
    instrument = get_protocol(question.instrument.protocol)
    try:
        return read_text(
            answer["text"],
            instrument,
            prompt=question.condition.prompt,
            mode=mode,
            box_space=_parse_box_space(answer["notes"] or "")
            if instrument.needs_box_space
            else None,
            size=planned.clips[0].size,
        )
    except (UnreelError, LookupError) as error:
        return build_damaged_row_failure(f"its notes name no space of boxes ({error})")


def _parse_box_space(notes: str) -> str:
    return _read_space(notes) if len(notes) <= _USUAL_NOTES else _read_space.__wrapped__(notes)


@lru_cache(maxsize=1024)  # the notes of one reviewer seldom differ
def _read_space(notes: str) -> str:
    return str(parse_object(notes.encode())["box_space"])
