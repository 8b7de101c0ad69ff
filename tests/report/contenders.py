"""Contenders whose answers are values: no clip is made and nobody is asked."""

from collections.abc import Mapping, Sequence

from unreel.benchmarks.entry import Entry
from unreel.core.clip import ClipId, Generated, Real, get_first_creator
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Rating, build_question_subject
from unreel.core.question import Condition
from unreel.protocols.box_space import parse_box_space
from unreel.protocols.protocol import AnswerContext, ScoredQuestion, get_protocol
from unreel.report.boards.board import ReportBoard, build_unfilled_report_board
from unreel.report.entrants import AnsweredQuestion, ReportClip, ReportEntrant

FAILED = Failure(FailureReason.RATE_LIMITED, "429")
REAL, FAKE = "<answer>1</answer>", "<answer>0</answer>"


def clip(name: str, creator: str = "", *, group: str = "", score: int | None = None) -> Entry:
    """A clip of a benchmark; without a creator it is real."""
    return Entry(
        name=name,
        location=f"{name}.mp4",
        origin=Generated(creator) if creator else Real(),
        group=group,
        rating=None if score is None else Rating(score=score),
    )


def entrant(
    name: str,
    shown: Sequence[Entry | tuple[Entry, Entry]],
    said: Mapping[str, str | Failure],
    *,
    instrument: str = "reality",
    is_floor: bool = False,
    n_pending: int = 0,
) -> ReportEntrant:
    """A reviewer that said `said` of each clip, or of the first of each pair, by its name."""
    asked = get_protocol(instrument)
    reading = AnswerContext(space=parse_box_space("unit", width=1, height=1))
    items = []
    for one in shown:
        entries = one if isinstance(one, tuple) else (one,)
        text = said[entries[0].name]
        outcome = text if isinstance(text, Failure) else asked.parse(text, reading)
        ids = [ClipId(entry.name) for entry in entries]
        rows = tuple(
            ScoredQuestion(
                subject=build_question_subject(*ids),
                truth=truth,
                outcome=outcome,
                source=entries[0].group,
                creator=get_first_creator(*(entry.origin for entry in entries)),
                difficulty=entries[0].difficulty,
            )
            for truth in asked.truths.of(entries, duration_us=1_000_000)
        )
        subjects = tuple(ReportClip(entry=entry, clip=FAILED) for entry in entries)
        items.append(AnsweredQuestion(key="+".join(ids), subjects=subjects, rows=rows, stored={}))
    return ReportEntrant(
        reviewer=name,
        is_floor=is_floor,
        condition=Condition(),
        instrument=asked,
        benchmark="bench",
        extent="",
        seed=0,
        judged=False,
        card=asked.score([row for item in items for row in item.rows], seed=0),
        n_pending=n_pending,
        n_rejected=0,
        items=tuple(items),
    )


def board_of(*entrants: ReportEntrant) -> ReportBoard:
    """The board that these share."""
    return build_unfilled_report_board(entrants, range(len(entrants)), number=0)
