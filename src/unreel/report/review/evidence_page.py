"""Evidence files of one review: the page, result.json, the stills and the annotated clip."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from markupsafe import Markup
from pydantic_core import to_jsonable_python

from unreel.core.answer import Reply
from unreel.core.box import Box
from unreel.core.clip import Clip
from unreel.core.errors import UnsafeTargetError
from unreel.core.failure import Failure, FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_names import make_safe_file_name
from unreel.core.safe_text import sanitise_line, sanitise_lines
from unreel.core.span import (
    MICROSECONDS,
    add_seconds_fields,
    convert_to_microseconds,
    format_seconds,
)
from unreel.core.trace import Trace
from unreel.evaluation.opinion import Opinion
from unreel.evaluation.review import Review
from unreel.media.decode import Rgb
from unreel.media.overlay import add_caption_panel, draw_box_outline, get_palette_colour
from unreel.media.picture import decode_jpeg, encode_jpeg, encode_png, scale_down_picture
from unreel.media.reader import MediaReader, OnFrames, SampledFrame
from unreel.pages import player
from unreel.pages.html_page import build_html_page, render_template
from unreel.pages.playable_clip import (
    CLIP_FILE_NAMES,
    PlayerVideo,
    build_data_uri,
    prepare_player_video,
)
from unreel.pages.player import PlayerTrackSpec, iter_overlay_traces, iter_track_colours
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
    FILE_ONLY,
    NO_PROOF,
    PARSERS,
    build_stability_rows,
    compute_reviewer_agreements,
    get_opinion_colour,
)
from unreel.report.review.review_result import (
    FORM,
    ReviewerAccuracyRecord,
    build_review_json,
    find_first_onset_us,
    format_review_headline,
    format_reviewer_accuracy,
    get_reviewer_kind_name,
)

_AROUND = 0.5
"""Margin on each side, as a fraction of the box's width and height."""
_MIN_SIDE = 64
_WANTED_SIDE = 480
_MAX_SCALE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultOutline:
    """Outline of a fault on one frame: box, colour and line style."""

    box: Box
    colour: int = 0
    dashed: bool = False


def draw_fault_frame(rgb: Rgb, outline: FaultOutline | None, sentences: Sequence[str]) -> Rgb:
    """Draw the outline of `outline` on the complete frame, above a caption with `sentences`."""
    drawn = rgb.copy()
    if outline is not None:
        draw_box_outline(
            drawn, outline.box, get_palette_colour(outline.colour), dashed=outline.dashed
        )
    return add_caption_panel(drawn, sentences)


def draw_fault_crop(rgb: Rgb, outline: FaultOutline, sentences: Sequence[str]) -> Rgb:
    """Draw the region around the outline `outline` above `sentences`; small regions are enlarged."""
    height, width, _ = rgb.shape
    left, right = _compute_crop_range(outline.box.x0, outline.box.x1, width)
    top, bottom = _compute_crop_range(outline.box.y0, outline.box.y1, height)
    factor = min(_MAX_SCALE, max(1, _WANTED_SIDE // max(right - left, bottom - top)))
    drawn = rgb[top:bottom, left:right].repeat(factor, axis=0).repeat(factor, axis=1)
    (x0, x1), (y0, y1) = (
        _convert_to_crop_fractions(outline.box.x0, outline.box.x1, side=width, crop=(left, right)),
        _convert_to_crop_fractions(outline.box.y0, outline.box.y1, side=height, crop=(top, bottom)),
    )
    draw_box_outline(
        drawn, Box(x0, y0, x1, y1), get_palette_colour(outline.colour), dashed=outline.dashed
    )
    enlarged = "" if factor == 1 else f", each pixel shown {factor} x {factor} times"
    note = f"Cut out of {width} x {height}: {left} to {right} across, {top} to {bottom} down{enlarged}."
    return add_caption_panel(drawn, [*sentences, note])


def _compute_crop_range(low: float, high: float, side: int) -> tuple[int, int]:
    """Return the pixel range of the crop in one dimension: the box with a margin, inside the frame."""
    min_margin = max(0.0, (_MIN_SIDE / side - (high - low)) / 2)
    margin = max(_AROUND * (high - low), min_margin)
    return max(0, int((low - margin) * side)), min(side, int((high + margin) * side) + 1)


def _convert_to_crop_fractions(
    low: float, high: float, *, side: int, crop: tuple[int, int]
) -> tuple[float, float]:
    """Convert a range from fractions of the picture to fractions of the crop."""
    first, end = crop
    parts = ((edge * side - first) / (end - first) for edge in (low, high))
    start, stop = (min(1.0, max(0.0, part)) for part in parts)
    return start, stop


FOLDER = "stills"
MAX_STILLS = 12
"""Maximum number of faults of one clip with stills."""

_OURS = re.compile(r"[0-9]{2}-.*\.png")
_PREVIEW_SIDE = 960
_PREVIEW_QUALITY = 80
_HELD_BYTES = 96 << 20
"""Maximum total size of frames in memory."""
_OPINION = "This is a reviewer's opinion, not forensic proof."


@dataclass(frozen=True, slots=True, kw_only=True)
class StillPicture:
    """PNG file of a still, with its hash, its size and a preview."""

    file: str
    """Path of the file, relative to the page."""
    sha256: str
    width: int
    height: int
    preview: bytes = field(repr=False)
    """JPEG preview of the picture."""

    def to_json(self) -> dict[str, Any]:
        """Return the picture's fields, except the preview, as JSON values."""
        fields = asdict(self)
        del fields["preview"]
        return fields

    def as_row(self) -> dict[str, Any]:
        return self.to_json() | {"uri": build_data_uri(self.preview, "image/jpeg")}


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedFault:
    """A fault that a reviewer or annotator marked, with its onset and its box."""

    reviewer: str
    kind: Literal["truth", "answer"]
    category: str
    """Category of the fault; "" if unknown, because reviewers answer in free text."""
    text: str
    start_us: int | None
    """Onset of the fault; if it is `None`, the first frame is shown."""
    box: Box | None
    spot: FaultOutline | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultStill:
    """Still pictures of one fault, or the failure to make them."""

    fault: MarkedFault
    source_sha256: str
    frame: int | None = None
    """Number of the frame, counted from 0."""
    at_us: int | None = None
    """Time at which that frame appears."""
    whole: StillPicture | None = None
    crop: StillPicture | None = None
    """Crop around the box of the fault; `None` if no box was marked."""
    failure: Failure | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the still as JSON for the result file of a review."""
        fault = self.fault
        return {
            "reviewer": fault.reviewer,
            "kind": fault.kind,
            "category": fault.category or None,
            "text": fault.text,
            "start_us": fault.start_us,
            "box": None if fault.box is None else asdict(fault.box),
            "source_sha256": self.source_sha256,
            "frame": self.frame,
            "at_us": self.at_us,
            "at_s": None if self.at_us is None else self.at_us / MICROSECONDS,
            "whole": None if self.whole is None else self.whole.to_json(),
            "crop": None if self.crop is None else self.crop.to_json(),
            "failure": None if self.failure is None else asdict(self.failure),
        }

    def as_row(self) -> dict[str, Any]:
        return {
            "fault": self.fault,
            "at": None if self.at_us is None else format_seconds(self.at_us),
            "frame": self.frame,
            "whole": None if self.whole is None else self.whole.as_row(),
            "crop": None if self.crop is None else self.crop.as_row(),
            "failure": None if self.failure is None else str(self.failure),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipFaultStills:
    """Stills of the faults of one clip, and the number of faults without stills."""

    stills: tuple[FaultStill, ...] = ()
    left_out: int = 0
    """Number of faults beyond `MAX_STILLS`, which have no stills."""

    def to_json(self) -> dict[str, Any]:
        """Return the stills as JSON for the result file of a review."""
        return {"stills": [still.to_json() for still in self.stills], "left_out": self.left_out}

    def as_rows(self) -> dict[str, Any]:
        return {"stills": [still.as_row() for still in self.stills], "left_out": self.left_out}


def remove_old_stills(output: OutputDirectory) -> None:
    """Remove the stills of an earlier review from the folder."""
    for name in output.files(FOLDER):
        if _OURS.fullmatch(name):
            output.remove(f"{FOLDER}/{name}")


def write_fault_stills(
    clip: Clip,
    tracks: Sequence[PlayerTrackSpec],
    out: Path,
    *,
    reader: MediaReader,
    duration_us: int,
) -> ClipFaultStills:
    """Write stills into `out`/stills: a frame of each fault, and a crop if the fault has a box."""
    faults = list(iter_marked_faults(tracks, duration_us=duration_us))
    selected, folder = faults[:MAX_STILLS], OutputDirectory(out, published=True)
    stills: list[FaultStill] = []
    width, height = clip.size
    batch_size = max(1, _HELD_BYTES // (3 * width * height))
    for start in range(0, len(selected), batch_size):
        batch = selected[start : start + batch_size]
        frames = reader.frames_at(clip.location, [fault.start_us or 0 for fault in batch])
        for number, fault in enumerate(batch, start=start + 1):
            if isinstance(frames, Failure):
                stills.append(FaultStill(fault=fault, source_sha256=clip.id, failure=frames))
                continue
            at_us = fault.start_us or 0
            # Half a microsecond of tolerance, because the time of a frame is rounded.
            frame = [f for f in frames.frames if f.at_s * MICROSECONDS <= at_us + 0.5][-1]
            stills.append(_write_still(clip, fault, frame, folder, number=number))
    return ClipFaultStills(stills=tuple(stills), left_out=len(faults) - len(selected))


def iter_marked_faults(
    tracks: Sequence[PlayerTrackSpec], *, duration_us: int
) -> Iterator[MarkedFault]:
    """Yield the faults on all tracks of the player, track by track."""
    for track, colour in zip(tracks, iter_track_colours(tracks), strict=True):
        overlay_traces = iter_overlay_traces(track, duration_us=duration_us)
        for trace, mark in zip(track.traces, overlay_traces, strict=True):
            box = mark.box_at(mark.span.start_us)
            yield MarkedFault(
                reviewer=track.name,
                kind=track.kind,
                category=trace.label if track.kind == "truth" else "",
                text=trace.text or trace.label,
                start_us=trace.start_us,
                box=box,
                spot=(
                    None
                    if box is None
                    else FaultOutline(box=box, colour=colour, dashed=not mark.ends)
                ),
            )


def _write_still(
    clip: Clip, fault: MarkedFault, frame: SampledFrame, directory: OutputDirectory, *, number: int
) -> FaultStill:
    at_us = convert_to_microseconds(frame.at_s)
    name = f"{FOLDER}/{number:02d}-{make_safe_file_name(fault.reviewer)[:60]}-frame-{frame.index}"
    category = f" Kind of fault: {fault.category}." if fault.category else ""
    onset = "" if fault.start_us is not None else " No time was given: this is the first frame."
    frame_text = (
        f"frame {frame.index} (the first is 0) of {sanitise_line(Path(clip.location).name)}"
    )
    caption = [
        f"{fault.reviewer}: {fault.text}",
        f"{format_seconds(at_us)}, {frame_text}.{category}{onset}",
        f"SHA-256 of the file: {clip.id}",
        *([_OPINION] if fault.kind == "answer" else []),
    ]
    rgb = frame.rgb()
    whole = _write_picture(directory, f"{name}.png", draw_fault_frame(rgb, fault.spot, caption))
    crop = None
    if fault.spot is not None:
        crop = _write_picture(
            directory, f"{name}-crop.png", draw_fault_crop(rgb, fault.spot, caption)
        )
    return FaultStill(
        fault=fault, source_sha256=clip.id, frame=frame.index, at_us=at_us, whole=whole, crop=crop
    )


def _write_picture(directory: OutputDirectory, name: str, rgb: Rgb) -> StillPicture:
    data = encode_png(rgb)
    directory.write(name, data)
    height, width, _ = rgb.shape
    return StillPicture(
        file=name,
        sha256=hashlib.sha256(data).hexdigest(),
        width=width,
        height=height,
        preview=encode_jpeg(scale_down_picture(rgb, _PREVIEW_SIDE), quality=_PREVIEW_QUALITY),
    )


PAGE = "evidence.html"
RESULT = "result.json"
STILLS_STYLE = "unreel.report.review:stills.css"
STYLES = (player.STYLE, "unreel.report.review:evidence.css", STILLS_STYLE)
SCRIPTS = (player.SCRIPT, player.MOUNT)

_UNIT = re.compile(r"(?<=\d) (?=s\b)")
_JOINED = "\u00a0"
"""Non-breaking space between a number and its unit."""
_THUMB = 192
_MAX_THUMBS = 64
_STOPPED = Failure(FailureReason.STOPPED, "the copy was not finished when this page was written")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFiles:
    """Result of writing the evidence of a review: the paths of the files, or the failures."""

    page: Path
    result: Path
    annotated: Path | Failure | None
    """`None` for a review without opinions and known faults, which has nothing to annotate."""
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


def write_evidence_files(
    review: Review,
    out: Path,
    *,
    reader: MediaReader,
    context: EvidencePageContext,
    on_page: Callable[[Path], None] = lambda _page: None,
    on_parts: Callable[[EvidencePageParts], None] = lambda _parts: None,
    on_frames: OnFrames = lambda _n_frames: None,
) -> EvidenceFiles:
    """Write the evidence page and the annotated clip of `review` into the folder `out`.

    The page and the result are first written without the annotated clip, which takes longest, and
    again when it is finished. Files of an earlier review in `out` are removed. `on_page` receives
    the page as soon as it can be opened, `on_parts` its parts each time it is written.
    """
    source = Path(review.clip.location)
    for name in (PAGE, RESULT, PDF, ANNOTATED, *CLIP_FILE_NAMES):
        if (out / name).exists() and source.exists() and source.samefile(out / name):
            raise UnsafeTargetError(str(out / name), "is the clip itself")
        OutputDirectory(out).remove(name)
    remove_old_stills(OutputDirectory(out))
    folder = OutputDirectory(out, published=True)
    footage = prepare_player_video(review.clip, out, reader=reader)
    duration_us = _get_duration_us(review)
    tracks = build_finding_tracks(review.opinions, context.truth, duration_us=duration_us)
    stills = write_fault_stills(review.clip, tracks, out, reader=reader, duration_us=duration_us)

    def write(annotated: Path | Failure | None) -> EvidenceFiles:
        parts = build_evidence_page_parts(
            review, context, footage=footage, annotated=annotated, stills=stills
        )
        on_parts(parts)
        page = folder.write(PAGE, build_evidence_page(parts).encode())
        document = {
            **FORM,
            "made_by": f"unreel {version('unreel')}",
            "made_at": context.made_at.isoformat(timespec="seconds"),
            "note": context.note,
            "warning": NO_PROOF if review.opinions else FILE_ONLY,
            **build_review_json(review, context.origin, records=context.records),
            "known": context.truth,
            "evidence": {
                "page": PAGE,
                "annotated": annotated.name if isinstance(annotated, Path) else annotated,
                **stills.to_json(),
            },
        }
        values = add_seconds_fields(to_jsonable_python(document))
        text = json.dumps(values, indent=2, ensure_ascii=False) + "\n"
        # A file name that is not UTF-8 contains surrogates, which JSON can only write as escapes.
        result = folder.write(RESULT, text.encode("utf-8", "backslashreplace"))
        return EvidenceFiles(
            page=page, result=result, annotated=annotated, footage=footage, stills=stills
        )

    has_findings = bool(review.opinions or context.truth)
    written = write(_STOPPED if has_findings else None)
    on_page(written.page)
    if not has_findings:
        return written
    annotated = write_annotated_clip(
        review, tracks, out, reader=reader, duration_us=duration_us, on_frames=on_frames
    )
    return write(annotated)


def build_evidence_page(parts: EvidencePageParts) -> str:
    """Build the evidence page from its parts as an HTML document."""
    return build_html_page(
        title=parts.title, body=parts.body, styles=STYLES, scripts=SCRIPTS, data=parts.data
    )


def build_evidence_page_parts(
    review: Review,
    context: EvidencePageContext,
    *,
    footage: PlayerVideo | Failure,
    annotated: Path | Failure | None,
    stills: ClipFaultStills,
) -> EvidencePageParts:
    """Build the parts of the evidence page: title, body and data of its scripts."""
    name = sanitise_line(Path(review.clip.location).name)
    opinions = [_build_opinion_row(opinion, review, context.records) for opinion in review.opinions]
    body = render_template(
        "unreel.report.review:evidence.html",
        name=name,
        sentence=_UNIT.sub(_JOINED, format_review_headline(review)),
        clip=review.clip,
        video=review.clip.facts.video,
        duration=format_seconds(_get_duration_us(review)),
        no_proof=NO_PROOF if opinions else FILE_ONLY,
        reading=PARSERS[review.mode],
        background=context,
        footage=footage if isinstance(footage, PlayerVideo) else None,
        footage_failure=str(footage) if isinstance(footage, Failure) else "",
        annotated=annotated.name if isinstance(annotated, Path) else "",
        annotated_failure=str(annotated) if isinstance(annotated, Failure) else "",
        stills=stills.as_rows(),
        stability=build_stability_rows(review.stabilities),
        opinions=opinions,
        reviewers=_build_reviewer_rows(opinions),
        known=[
            {
                "label": trace.label,
                "when": " to ".join(
                    format_seconds(at_us)
                    for at_us in (trace.start_us, trace.end_us)
                    if at_us is not None
                ),
                "text": trace.text,
            }
            for trace in build_known_trace_specs(context.truth)
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
        duration_us = _get_duration_us(review)
        shown_us = (
            convert_to_microseconds(frame.at_s)
            for opinion in review.opinions
            if opinion.clip_input
            for frame in opinion.clip_input.frames
        )
        tracks = build_finding_tracks(review.opinions, context.truth, duration_us=duration_us)
        spec = player.build_player_spec(
            footage, title=name, duration_us=duration_us, shown_us=shown_us, tracks=tracks
        )
        data[player.SPEC_ID] = asdict(spec)
    return EvidencePageParts(title=f"{name}: evidence", body=body, data=data)


def _build_reviewer_rows(opinions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return template values per reviewer: answers, and records, once if the same for all answers."""
    rows = []
    for name in dict.fromkeys(row["reviewer"] for row in opinions):
        own = [row for row in opinions if row["reviewer"] == name]
        records = [(row["asked"], row["record"]) for row in own]
        if len({record for _, record in records}) == 1:
            records = [("", own[0]["record"])]
        rows.append(
            {
                "name": name,
                "kind": get_reviewer_kind_name(name),
                "answers": own,
                "records": records,
                "footage": [(row["asked"], row["footage"]) for row in own if row["footage"]],
            }
        )
    return rows


def _build_opinion_row(
    opinion: Opinion, review: Review, records: Sequence[ReviewerAccuracyRecord]
) -> dict[str, Any]:
    compared = review.compare_with_footage(opinion)
    reply = opinion.outcome if isinstance(opinion.outcome, Reply) else None
    usage = reply.usage if reply else None
    frames = opinion.clip_input.frames if opinion.clip_input else ()
    thumbs = [scale_down_picture(decode_jpeg(f.jpeg), _THUMB) for f in frames[:_MAX_THUMBS]]
    onset_us = find_first_onset_us([opinion])
    latency_us = None if reply is None else reply.latency_us
    return {
        "reviewer": sanitise_line(opinion.reviewer),
        "instrument": opinion.question.instrument,
        "asked": get_protocol(opinion.question.instrument.protocol).title,
        "record": format_reviewer_accuracy(opinion, records),
        "footage": "" if compared is None else compared.text,
        "tone": get_opinion_colour(opinion),
        "headline": opinion.headline,
        "onset": "" if onset_us is None else format_seconds(onset_us),
        "failure": (
            opinion.problem and f"{opinion.problem[0].upper()}{opinion.problem[1:].rstrip('.')}."
        ),
        "parts": opinion.details,
        "condition": opinion.question.condition.written(),
        "prompt": opinion.prompt,
        "raw": None if reply is None else sanitise_lines(reply.text),
        "key": opinion.key,
        "box_space": opinion.box_space,
        "latency": None if latency_us is None else format_seconds(latency_us),
        "tokens": usage,
        "cost_usd": None if opinion.cost_usd is None else f"{opinion.cost_usd:.6f}",
        "frames": [
            {
                "index": frame.index,
                "at_us": (at_us := convert_to_microseconds(frame.at_s)),
                "at": format_seconds(at_us),
                "size": f"{frame.width} x {frame.height}",
                "thumb": build_data_uri(encode_jpeg(thumb, quality=72), "image/jpeg"),
            }
            for frame, thumb in zip(frames, thumbs, strict=False)
        ],
        "n_frames": len(frames),
        "whole": bool(opinion.clip_input and opinion.clip_input.whole),
        "sound": bool(opinion.clip_input and opinion.clip_input.sound_wav),
    }


def _get_duration_us(review: Review) -> int:
    return max(1, convert_to_microseconds(review.clip.facts.video.duration_s))
