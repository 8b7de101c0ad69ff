"""Evidence files of one review: the page, result.json, the stills and the annotated clip."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup
from pydantic_core import to_jsonable_python

from unreel.core.answer import Reply
from unreel.core.clip import Clip
from unreel.core.errors import UnsafeTargetError
from unreel.core.failure import Failure, FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_text import sanitise_line, sanitise_lines
from unreel.core.span import add_seconds_fields, convert_to_microseconds, format_seconds
from unreel.core.trace import Trace
from unreel.evaluation.opinion import Opinion
from unreel.evaluation.review import Review
from unreel.media.annotated_copy_messages import OnFrames
from unreel.media.picture import decode_jpeg, encode_jpeg, scale_down_picture
from unreel.media.reader import MediaReader
from unreel.pages import player
from unreel.pages.html_page import build_html_page, render_template
from unreel.pages.playable_clip import BESIDE, PlayerVideo, build_data_uri, prepare_player_video
from unreel.protocols.protocol import get_protocol
from unreel.report.review.browser_pdf import PDF
from unreel.report.review.drawn_findings import (
    ANNOTATED,
    build_finding_tracks,
    build_known_trace_specs,
    write_annotated_clip,
)
from unreel.report.review.file_origin import FileOriginChecks
from unreel.report.review.opinion_text import (
    NO_PROOF,
    PARSERS,
    build_stability_rows,
    compute_reviewer_agreements,
    get_opinion_colour,
)
from unreel.report.review.review_result import (
    FORM,
    build_review_json,
    find_first_onset_us,
    format_review_headline,
    get_reviewer_kind_name,
)
from unreel.report.review.reviewer_accuracy import ReviewerAccuracyRecord, format_reviewer_accuracy
from unreel.report.review.stills import ClipFaultStills, remove_old_stills, write_fault_stills

PAGE: Final = "evidence.html"
RESULT: Final = "result.json"
STILLS_STYLE: Final = "unreel.report.review:stills.css"
STYLES: Final = (player.STYLE, "unreel.report.review:evidence.css", STILLS_STYLE)
SCRIPTS: Final = (player.SCRIPT, player.MOUNT)

_UNIT: Final = re.compile(r"(?<=\d) (?=s\b)")
_JOINED: Final = "\u00a0"
"""Non-breaking space between a number and its unit."""
_THUMB: Final = 192
_MOST_THUMBS: Final = 64
_STOPPED: Final = Failure(FailureReason.STOPPED, "it was not finished when this page was written")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFiles:
    """Result of writing the evidence of a review: the paths of the files, or the failures."""

    page: Path
    result: Path
    annotated: Path | Failure
    footage: PlayerVideo | Failure
    stills: ClipFaultStills


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidencePageContext:
    """Data of an evidence page besides the opinions: origin checks, known faults, note and records."""

    origin: FileOriginChecks
    made_at: datetime
    truth: tuple[Trace, ...] = ()
    """Known faults of the clip, if any."""
    note: str = ""
    """Sentence at the top of the page, for example that the answers are recorded."""
    records: tuple[ReviewerAccuracyRecord, ...] = ()
    """Accuracy of the reviewers in earlier runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidencePageParts:
    """Parts of the page, from which `build_html_page` makes a document with `STYLES` and `SCRIPTS`."""

    title: str
    body: Markup
    data: dict[str, Any]


def write_evidence_files(  # noqa: PLR0913  one parameter for each callback
    review: Review,
    out: Path,
    *,
    reader: MediaReader,
    background: EvidencePageContext,
    on_page: Callable[[Path], None] = lambda _page: None,
    on_parts: Callable[[EvidencePageParts], None] = lambda _parts: None,
    on_frames: OnFrames = lambda _n_frames: None,
) -> EvidenceFiles:
    """Write the evidence page and the annotated clip of `review` into the folder `out`.

    The page and the result are first written without the annotated clip, which takes longest, and
    again when it is finished. Files of an earlier review in `out` are removed.

    Args:
        review: opinions about one clip.
        out: folder that is written.
        reader: reader of the clip.
        background: data of the page besides the opinions.
        on_page: callback that receives the page's path as soon as it can be opened.
        on_parts: callback that receives the parts of the page each time it is written.
        on_frames: callback that receives the number of frames drawn so far.
    """
    _remove_old_evidence(out, review.clip)
    folder = OutputDirectory(out, published=True)
    footage = prepare_player_video(review.clip, out, reader=reader)
    duration_us = _get_duration_us(review)
    tracks = build_finding_tracks(review.opinions, background.truth, duration_us=duration_us)
    stills = write_fault_stills(review.clip, tracks, out, reader=reader, duration_us=duration_us)

    def write(annotated: Path | Failure) -> EvidenceFiles:
        parts = build_evidence_page_parts(
            review, background, footage=footage, annotated=annotated, stills=stills
        )
        on_parts(parts)
        page = folder.write(PAGE, build_evidence_page(parts).encode())
        document = _format_result_json(review, background, annotated=annotated, stills=stills)
        # A file name that is not UTF-8 contains surrogates, which JSON can only write as escapes.
        result = folder.write(RESULT, document.encode("utf-8", "backslashreplace"))
        return EvidenceFiles(
            page=page, result=result, annotated=annotated, footage=footage, stills=stills
        )

    on_page(write(_STOPPED).page)
    annotated = write_annotated_clip(
        review, tracks, out, reader=reader, duration_us=duration_us, on_frames=on_frames
    )
    return write(annotated)


def _remove_old_evidence(out: Path, clip: Clip) -> None:
    """Remove the evidence files of an earlier review; raise if one of them is the clip itself."""
    source = Path(clip.location)
    for name in (PAGE, RESULT, PDF, ANNOTATED, *BESIDE):
        if (out / name).exists() and source.exists() and source.samefile(out / name):
            raise UnsafeTargetError(str(out / name), "is the clip itself")
        OutputDirectory(out).remove(name)
    remove_old_stills(OutputDirectory(out))


def build_evidence_page(parts: EvidencePageParts) -> str:
    """Build the evidence page from its parts as an HTML document."""
    return build_html_page(
        title=parts.title, body=parts.body, styles=STYLES, scripts=SCRIPTS, data=parts.data
    )


def build_evidence_page_parts(
    review: Review,
    background: EvidencePageContext,
    *,
    footage: PlayerVideo | Failure,
    annotated: Path | Failure,
    stills: ClipFaultStills,
) -> EvidencePageParts:
    """Build the parts of the evidence page: title, body and data of its scripts."""
    name = sanitise_line(Path(review.clip.location).name)
    opinions = [_build_opinion_row(opinion, background.records) for opinion in review.opinions]
    body = render_template(
        "unreel.report.review:evidence.html",
        name=name,
        sentence=_UNIT.sub(_JOINED, format_review_headline(review)),
        clip=review.clip,
        video=review.clip.facts.video,
        duration=format_seconds(_get_duration_us(review)),
        no_proof=NO_PROOF,
        reading=PARSERS[review.mode],
        background=background,
        footage=footage if isinstance(footage, PlayerVideo) else None,
        footage_failure=str(footage) if isinstance(footage, Failure) else "",
        annotated=annotated.name if isinstance(annotated, Path) else "",
        annotated_failure=str(annotated) if isinstance(annotated, Failure) else "",
        stills=stills.as_rows(),
        stability=build_stability_rows(review.stabilities),
        opinions=opinions,
        reviewers=_build_reviewer_rows(opinions),
        known=[
            {"label": trace.label, "when": _format_trace_span(trace), "text": trace.text}
            for trace in build_known_trace_specs(background.truth)
        ],
        agreements=[
            (get_protocol(agreement.protocol).title, agreement.counts)
            for agreement in compute_reviewer_agreements(review.opinions)
        ],
        version=version("unreel"),
        result=RESULT,
    )
    data = {}
    if isinstance(footage, PlayerVideo):
        data[player.SPEC_ID] = asdict(
            _build_player_spec(review, footage, title=name, truth=background.truth)
        )
    return EvidencePageParts(title=f"{name}: evidence", body=body, data=data)


def _format_result_json(
    review: Review,
    background: EvidencePageContext,
    *,
    annotated: Path | Failure,
    stills: ClipFaultStills,
) -> str:
    """Return the content of the evidence page as the JSON text of the result file."""
    document = {
        **FORM,
        "made_by": f"unreel {version('unreel')}",
        "made_at": background.made_at.isoformat(timespec="seconds"),
        "note": background.note,
        "warning": NO_PROOF,
        **build_review_json(review, background.origin, records=background.records),
        "known": background.truth,
        "evidence": {
            "page": PAGE,
            "annotated": annotated.name if isinstance(annotated, Path) else annotated,
            **stills.to_json(),
        },
    }
    values = add_seconds_fields(to_jsonable_python(document))
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"


def _format_trace_span(trace: player.PlayerTraceSpec) -> str:
    ends = [at_us for at_us in (trace.start_us, trace.end_us) if at_us is not None]
    return " to ".join(map(format_seconds, ends))


def _build_reviewer_rows(opinions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return template values per reviewer: answers, and records, once if the same for all answers."""
    rows = []
    for name in dict.fromkeys(row["reviewer"] for row in opinions):
        own = [row for row in opinions if row["reviewer"] == name]
        records = [(row["asked"], row["record"]) for row in own]
        if len({record for _, record in records}) == 1:
            records = [("", own[0]["record"])]
        rows.append(
            {"name": name, "kind": get_reviewer_kind_name(name), "answers": own, "records": records}
        )
    return rows


def _build_opinion_row(
    opinion: Opinion, records: Sequence[ReviewerAccuracyRecord]
) -> dict[str, Any]:
    """Return one opinion as a dictionary for the page's template."""
    reply = opinion.outcome if isinstance(opinion.outcome, Reply) else None
    usage = reply.usage if reply else None
    frames = opinion.exhibit.frames if opinion.exhibit else ()
    return {
        "reviewer": sanitise_line(opinion.reviewer),
        "instrument": opinion.question.instrument,
        "asked": get_protocol(opinion.question.instrument.protocol).title,
        "record": format_reviewer_accuracy(opinion, records),
        "tone": get_opinion_colour(opinion),
        "headline": opinion.headline,
        "onset": ""
        if (onset_us := find_first_onset_us([opinion])) is None
        else format_seconds(onset_us),
        "failure": _format_sentence(opinion.problem),
        "parts": opinion.details,
        "condition": opinion.question.condition.written(),
        "prompt": opinion.prompt,
        "raw": None if reply is None else sanitise_lines(reply.text),
        "key": opinion.key,
        "box_space": opinion.box_space,
        "latency": None
        if reply is None or reply.latency_us is None
        else format_seconds(reply.latency_us),
        "tokens": usage,
        "cost_usd": None if opinion.cost_usd is None else f"{opinion.cost_usd:.6f}",
        "frames": [
            {
                "index": frame.index,
                "at_us": (at_us := convert_to_microseconds(frame.at_s)),
                "at": format_seconds(at_us),
                "size": f"{frame.width} x {frame.height}",
                "thumb": _build_thumbnail_uri(frame.jpeg),
            }
            for frame in frames[:_MOST_THUMBS]
        ],
        "n_frames": len(frames),
        "whole": bool(opinion.exhibit and opinion.exhibit.whole),
        "sound": bool(opinion.exhibit and opinion.exhibit.sound_wav),
    }


def _format_sentence(problem: str | None) -> str | None:
    return problem and f"{problem[0].upper()}{problem[1:].rstrip('.')}."


def _build_thumbnail_uri(jpeg: bytes) -> str:
    small = scale_down_picture(decode_jpeg(jpeg), _THUMB)
    return build_data_uri(encode_jpeg(small, quality=72), "image/jpeg")


def _build_player_spec(
    review: Review, footage: PlayerVideo, *, title: str, truth: tuple[Trace, ...]
) -> player.PlayerSpec:
    duration_us = _get_duration_us(review)
    shown_us = (
        convert_to_microseconds(frame.at_s)
        for opinion in review.opinions
        if opinion.exhibit
        for frame in opinion.exhibit.frames
    )
    tracks = build_finding_tracks(review.opinions, truth, duration_us=duration_us)
    return player.build_player_spec(
        footage, title=title, duration_us=duration_us, shown_us=shown_us, tracks=tracks
    )


def _get_duration_us(review: Review) -> int:
    return max(1, convert_to_microseconds(review.clip.facts.video.duration_s))
