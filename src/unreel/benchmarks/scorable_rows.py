"""Rows for the scorers of `protocols`, built from answers and the ground truth of their entries."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.imported_answers import JoinedAnswers
from unreel.benchmarks.statistics import (
    build_no_matching_answer_error,
    build_no_question_error,
    build_no_usable_entry_error,
)
from unreel.core.clip import get_first_creator, get_first_creator_setting
from unreel.core.content_ids import compute_placeholder_clip_id
from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure
from unreel.core.judgement import build_question_subject
from unreel.protocols.answer_text import parse_answer_text
from unreel.protocols.box_space import parse_box_space
from unreel.protocols.protocol import Mode, Protocol, ScoredQuestion

PIXEL: Final = "pixel"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorableRows:
    """Answers with ground truth that can be scored, and the entries or pairs that cannot be scored."""

    rows: tuple[ScoredQuestion[Any, Any], ...]
    not_asked: tuple[str, ...]
    """Names of entries or pairs without an answer."""
    without_truth: tuple[Rejected, ...]
    """Entries without the ground truth of the protocol."""


def build_scorable_rows(
    joined: JoinedAnswers,
    protocol: Protocol[Any, Any],
    *,
    mode: Mode = "strict",
    prompt: str = "paper",
    space: str | None = None,
) -> ScorableRows:
    """Parse the answers and combine each with its ground truth.

    An entry gives one row; for `trace` it gives one row per annotation row.

    Args:
        joined: Entries with their answers.
        protocol: Protocol of the answers.
        mode: Mode of the parser.
        prompt: Prompt variant, which selects the parser.
        space: Coordinate space of boxes: `pixel`, `unit`, `permille` or `model-input WxH`;
            `trace` needs it.

    Raises:
        InvalidValueError: The protocol is about pairs and the answers are not, or vice versa.
    """
    if space is not None:
        parse_box_space(space, width=1, height=1)  # raises for an unknown name before any row
    rows: list[ScoredQuestion[Any, Any]] = []
    not_asked: list[str] = []
    without_truth: list[Rejected] = []
    for item, outcome in joined.pairs:
        if outcome is None:
            not_asked.append(item.name)
            continue
        entries = (item,) if isinstance(item, Entry) else item.shown
        if len(entries) != protocol.n_clips:
            name, about = protocol.instrument.protocol, protocol.subject
            msg = f"{name} needs a {about}. Join the answers with subject={about!r}"
            raise InvalidValueError(msg)
        try:
            known = protocol.truths.of(entries, duration_us=entries[0].facts.duration_us)
            size = _require_frame_size(space, entries[0])
        except InvalidValueError as error:
            without_truth.append(Rejected(item.name, str(error)))
            continue
        read = partial(parse_answer_text, prompt=prompt, mode=mode, box_space=space, size=size)
        parsed = outcome if isinstance(outcome, Failure) else read(outcome.text, protocol)
        # Placeholder ids, because the files need not exist here.
        subject = build_question_subject(
            *(compute_placeholder_clip_id("entry", entry.name) for entry in entries)
        )
        origins = [entry.origin for entry in entries]
        rows.extend(
            ScoredQuestion(
                subject=subject,
                truth=truth,
                outcome=parsed,
                source=item.group,
                creator=get_first_creator(*origins),
                setting=get_first_creator_setting(*origins),
                difficulty=entries[0].difficulty,
            )
            for truth in known
        )
    return ScorableRows(
        rows=tuple(rows), not_asked=tuple(not_asked), without_truth=tuple(without_truth)
    )


def require_scorable_rows(
    scorable: ScorableRows,
    joined: JoinedAnswers,
    protocol: Protocol[Any, Any],
    *,
    answers: str,
    benchmark: str,
) -> None:
    """Check that there is a row to score; `answers` and `benchmark` name the sources for the error.

    Raises:
        UnreadableSourceError: No answer fits the benchmark, or none of its rows can be used.
    """
    if scorable.rows:
        return
    if not joined.pairs:
        raise build_no_usable_entry_error(
            benchmark, joined.rejected, n_rejected=len(joined.rejected)
        )
    if scorable.without_truth:
        raise build_no_question_error(benchmark, protocol, scorable.without_truth)
    raise build_no_matching_answer_error(answers, joined.unknown, scorable.not_asked)


def _require_frame_size(declared: str | None, entry: Entry) -> tuple[int, int]:
    width, height = entry.facts.width, entry.facts.height
    if declared == PIXEL and (not width or not height):
        msg = "no frame size declared. Add width and height columns, or read them from the file"
        raise InvalidValueError(msg)
    return width or 1, height or 1
