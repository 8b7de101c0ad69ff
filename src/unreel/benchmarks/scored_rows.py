"""Joined answers as the rows that the scorers of `protocols` take."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from unreel.benchmarks.answers import JoinedAnswers
from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.no_result_advice import (
    build_no_answer_error,
    build_no_entry_error,
    build_no_question_error,
)
from unreel.core.clip import get_creator, get_setting
from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure
from unreel.core.identity import digest_id
from unreel.core.judgement import get_subject
from unreel.protocols.parse_answer import read_text
from unreel.protocols.protocol import Mode, Protocol, ScoredQuestion
from unreel.protocols.space import declare_space

PIXEL: Final = "pixel"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorableRows:
    """Rows to score, and the entries or pairs that have no place among them."""

    rows: tuple[ScoredQuestion[Any, Any], ...]
    not_asked: tuple[str, ...]
    """Names of entries or pairs without an answer."""
    without_truth: tuple[Rejected, ...]
    """Entries without the ground truth of the protocol."""


def build_rows(
    joined: JoinedAnswers,
    protocol: Protocol[Any, Any],
    *,
    mode: Mode = "strict",
    prompt: str = "paper",
    space: str | None = None,
) -> ScorableRows:
    """Parse the answers and pair each with its ground truth: for `trace` one row per annotation row.

    `mode` and `prompt` select the parser. `space` is the declared space of boxes: `pixel`, `unit`,
    `permille` or `model-input WxH`; `trace` needs it.

    Raises:
        InvalidValueError: The answers have another subject than the protocol.
    """
    if space is not None:
        declare_space(
            space, width=1, height=1
        )  # an unknown name is the caller's mistake: say so now
    rows: list[ScoredQuestion[Any, Any]] = []
    not_asked: list[str] = []
    without_truth: list[Rejected] = []
    for asked, outcome in joined.pairs:
        if outcome is None:
            not_asked.append(asked.name)
            continue
        shown = (asked,) if isinstance(asked, Entry) else asked.shown
        if len(shown) != protocol.n_clips:
            name, about = protocol.instrument.protocol, protocol.subject
            msg = f"{name} is asked about a {about}. Join the answers with subject={about!r}"
            raise InvalidValueError(msg)
        try:
            known = protocol.truths.of(shown, duration_us=shown[0].facts.duration_us)
            size = _require_frame_size(space, shown[0])
        except InvalidValueError as error:
            without_truth.append(Rejected(asked.name, str(error)))
            continue
        read = partial(read_text, prompt=prompt, mode=mode, box_space=space, size=size)
        said = outcome if isinstance(outcome, Failure) else read(outcome.text, protocol)
        # The files themselves need not be here.
        subject = get_subject(*(digest_id("entry", entry.name) for entry in shown))
        origins = [entry.origin for entry in shown]
        rows.extend(
            ScoredQuestion(
                subject=subject,
                truth=truth,
                outcome=said,
                source=asked.group,
                creator=get_creator(*origins),
                setting=get_setting(*origins),
                difficulty=shown[0].difficulty,
            )
            for truth in known
        )
    return ScorableRows(
        rows=tuple(rows), not_asked=tuple(not_asked), without_truth=tuple(without_truth)
    )


def require_rows(
    scorable: ScorableRows,
    joined: JoinedAnswers,
    protocol: Protocol[Any, Any],
    *,
    answers: str,
    benchmark: str,
) -> None:
    """Refuse to score nothing; `answers` and `benchmark` say where they come from.

    Raises:
        UnreadableSourceError: No answer fits the benchmark, or none of its rows can be used.
    """
    if scorable.rows:
        return
    if not joined.pairs:
        raise build_no_entry_error(benchmark, joined.rejected, n_rejected=len(joined.rejected))
    if scorable.without_truth:
        raise build_no_question_error(benchmark, protocol, scorable.without_truth)
    raise build_no_answer_error(answers, joined.unknown, scorable.not_asked)


def _require_frame_size(declared: str | None, entry: Entry) -> tuple[int, int]:
    width, height = entry.facts.width, entry.facts.height
    if declared == PIXEL and (not width or not height):
        msg = "no frame size declared. Add width and height columns, or read them from the file"
        raise InvalidValueError(msg)
    return width or 1, height or 1
