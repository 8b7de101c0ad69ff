"""The evidence of one review: a page to look at, and the clip with what was found drawn on it."""

from dataclasses import asdict, dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from unreel.core.answer import Reply
from unreel.core.failure import Failure, FailureReason
from unreel.core.plain import plain, plain_lines
from unreel.core.span import tell_seconds, to_us
from unreel.core.trace import Trace
from unreel.core.writing import Folder
from unreel.evaluate.opinion import Opinion
from unreel.evaluate.review import Review
from unreel.media.annotate_wire import OnFrames
from unreel.media.picture import decode_jpeg, encode_jpeg, fit_longest
from unreel.media.reader import MediaReader
from unreel.pages import player
from unreel.pages.footage import Footage, data_uri, prepare_footage
from unreel.pages.page import render, whole_page
from unreel.report.review.film import ANNOTATED, write_copy
from unreel.report.review.findings import find_tracks
from unreel.report.review.opinion_text import NO_PROOF, agreements, tone
from unreel.report.review.provenance import Provenance
from unreel.report.review.stability_text import stability_rows
from unreel.report.review.stills import Stills, clear_stills, write_stills

PAGE: Final = "evidence.html"
STILLS_STYLE: Final = "unreel.report.review:stills.css"

_THUMB: Final = 192
_MOST_THUMBS: Final = 64
_STOPPED: Final = Failure(FailureReason.OUT_OF_TIME, "its making was stopped before its end")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was written."""

    page: Path
    annotated: Path | Failure
    footage: Footage | Failure
    stills: Stills


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """What a page tells beside the opinions."""

    provenance: Provenance
    made_at: datetime
    truth: tuple[Trace, ...] = ()
    """Where the clip's faults really are, if anybody knows."""
    note: str = ""
    """A sentence at the top, for example that the answers are recorded."""


def write_evidence(
    review: Review,
    out: Path,
    *,
    reader: MediaReader,
    background: Background,
    on_frames: OnFrames = lambda _n_frames: None,
) -> Evidence:
    """Write the page and the annotated clip of `review` into the folder `out`.

    `on_frames` hears how many frames of the annotated clip were drawn. Nothing that an earlier review
    left there stays, and whoever stops the drawing has the page all the same.
    """
    _clear(Folder(out))
    footage = prepare_footage(review.clip, out, reader=reader)
    duration_us = _duration_us(review)
    tracks = find_tracks(review.opinions, background.truth, duration_us=duration_us)
    stills = write_stills(review.clip, tracks, out, reader=reader, duration_us=duration_us)
    annotated: Path | Failure = _STOPPED
    try:
        annotated = write_copy(
            review, tracks, out, reader=reader, duration_us=duration_us, on_frames=on_frames
        )
    finally:
        html = build_page(review, background, footage=footage, annotated=annotated, stills=stills)
        page = Folder(out).write(PAGE, html.encode())
    return Evidence(page=page, annotated=annotated, footage=footage, stills=stills)


def _clear(out: Folder) -> None:
    for name in (PAGE, ANNOTATED):
        out.remove(name)
    clear_stills(out)


def build_page(
    review: Review,
    background: Background,
    *,
    footage: Footage | Failure,
    annotated: Path | Failure,
    stills: Stills,
) -> str:
    """The whole page as HTML."""
    name = plain(Path(review.clip.location).name)
    opinions = [_opinion_row(opinion) for opinion in review.opinions]
    named = dict.fromkeys(row["reviewer"] for row in opinions)
    body = render(
        "unreel.report.review:evidence.html",
        name=name,
        clip=review.clip,
        video=review.clip.facts.video,
        duration=tell_seconds(_duration_us(review)),
        no_proof=NO_PROOF,
        background=background,
        footage=footage if isinstance(footage, Footage) else None,
        footage_failure=str(footage) if isinstance(footage, Failure) else "",
        annotated=annotated.name if isinstance(annotated, Path) else "",
        annotated_failure=str(annotated) if isinstance(annotated, Failure) else "",
        stills=stills.as_rows(),
        stability=stability_rows(review.stabilities),
        opinions=opinions,
        reviewers={who: [row for row in opinions if row["reviewer"] == who] for who in named},
        agreements=[str(agreement) for agreement in agreements(review.opinions)],
        version=version("unreel"),
    )
    data = {}
    if isinstance(footage, Footage):
        data[player.SPEC_ID] = asdict(_spec(review, footage, title=name, truth=background.truth))
    return whole_page(
        title=f"{name}: evidence",
        body=body,
        styles=[player.STYLE, "unreel.report.review:evidence.css", STILLS_STYLE],
        scripts=[player.SCRIPT, player.MOUNT],
        data=data,
    )


def _opinion_row(opinion: Opinion) -> dict[str, Any]:
    """One opinion as the template shows it: texts only."""
    reply = opinion.outcome if isinstance(opinion.outcome, Reply) else None
    usage = reply.usage if reply else None
    frames = opinion.exhibit.frames if opinion.exhibit else ()
    return {
        "reviewer": plain(opinion.reviewer),
        "instrument": str(opinion.question.instrument),
        "tone": tone(opinion),
        "headline": opinion.headline,
        "failure": opinion.problem,
        "parts": opinion.details,
        "condition": opinion.question.condition.written(),
        "prompt": opinion.prompt,
        "raw": None if reply is None else plain_lines(reply.text),
        "key": opinion.key,
        "box_space": opinion.box_space,
        "latency": None
        if reply is None or reply.latency_us is None
        else tell_seconds(reply.latency_us),
        "tokens": usage,
        "cost_usd": None if opinion.cost_usd is None else f"{opinion.cost_usd:.6f}",
        "frames": [
            {
                "index": frame.index,
                "at_us": (at_us := to_us(frame.at_s)),
                "at": tell_seconds(at_us),
                "size": f"{frame.width} x {frame.height}",
                "thumb": _thumb(frame.jpeg),
            }
            for frame in frames[:_MOST_THUMBS]
        ],
        "n_frames": len(frames),
        "whole": bool(opinion.exhibit and opinion.exhibit.whole),
        "sound": bool(opinion.exhibit and opinion.exhibit.sound_wav),
    }


def _thumb(jpeg: bytes) -> str:
    small = fit_longest(decode_jpeg(jpeg), _THUMB)
    return data_uri(encode_jpeg(small, quality=72), "image/jpeg")


def _spec(
    review: Review, footage: Footage, *, title: str, truth: tuple[Trace, ...]
) -> player.PlayerSpec:
    duration_us = _duration_us(review)
    shown_us = (
        to_us(frame.at_s)
        for opinion in review.opinions
        if opinion.exhibit
        for frame in opinion.exhibit.frames
    )
    tracks = find_tracks(review.opinions, truth, duration_us=duration_us)
    return player.play(
        footage, title=title, duration_us=duration_us, shown_us=shown_us, tracks=tracks
    )


def _duration_us(review: Review) -> int:
    return max(1, to_us(review.clip.facts.video.duration_s))
