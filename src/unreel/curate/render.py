"""Pieces become files: cut, cropped, trimmed and brought into one form, named by their content."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

from unreel.core.box import Box
from unreel.core.failure import Failure
from unreel.core.identity import clip_id
from unreel.core.span import TimeSpan, to_us
from unreel.core.trace import BoxAt, Trace
from unreel.curate.piece import (
    CUT,
    FACTS,
    LeftOut,
    MadeClip,
    Piece,
    Sifted,
    failed_piece,
    keep_once,
    stored_name,
)
from unreel.curate.step import Found, StepName, Workbench
from unreel.engine.place import Place
from unreel.media.normalise import NormalForm
from unreel.media.reader import MediaReader
from unreel.media.render import WHOLE, Crop

RENDER: Final = "render"
FRAME: Final = Box(0, 0, 1, 1)
"""All of a frame."""


def render_pieces(bench: Workbench, pieces: Sequence[Piece], *, form: NormalForm | None) -> Sifted:
    """Every piece as a file of its own; a whole clip in no given form stays the file that it is."""
    step = StepName(name=RENDER, version=1, settings={"form": _told(form)})
    look = partial(_render, form=form, media=bench.media)
    due = [piece for piece in pieces if form is not None or piece.cut != WHOLE]
    whole = CUT.dump_python(WHOLE, mode="json")
    cleaned = {
        piece.id: replace(
            piece.subject(cut=whole), clip=piece.cleaned.clip, location=piece.cleaned.location
        )
        for piece in due
        if piece.cleaned is not None
    }
    subjects = [piece.subject(cut=CUT.dump_python(piece.cut, mode="json")) for piece in due]
    # One run for both: starting an engine costs seconds.
    found = bench.ask(step, [*subjects, *cleaned.values()], look)
    made = dict(zip((piece.id for piece in due), found[: len(due)], strict=True))
    clean = dict(zip(cleaned, found[len(due) :], strict=True))
    kept: list[Piece] = []
    out: list[LeftOut] = []
    for piece in pieces:
        own, copy = made.get(piece.id), clean.get(piece.id)
        failure = next((one for one in (own, copy) if isinstance(one, Failure)), None)
        if failure is not None:
            out.append(failed_piece(piece, RENDER, failure))
        elif isinstance(own, Mapping):
            done = _as_made(piece, MadeClip.of(own, bench.media), form)
            if isinstance(copy, Mapping):
                done = replace(done, cleaned=MadeClip.of(copy, bench.media))
            kept.append(done)
        else:
            kept.append(piece)
    once, doubled = keep_once(kept, step=RENDER)
    return Sifted(pieces=tuple(once), left_out=(*out, *doubled))


def store_clip(data: bytes, media: Place, *, reader: MediaReader) -> Found | Failure:
    """Keep an mp4 file's bytes under their hash; what `MadeClip.of` reads."""
    with NamedTemporaryFile(prefix="unreel-", suffix=".mp4") as copy:
        path = Path(copy.name)
        copy.write(data)
        copy.flush()
        facts = reader.probe(path)
        if isinstance(facts, Failure):
            return facts
        clip = clip_id(path)
    name = stored_name(clip, ".mp4")
    media.put(name, data)
    return {"made": clip, "name": name, "facts": FACTS.dump_python(facts, mode="json")}


def _render(
    reader: MediaReader, file: Path, given: Found, *, form: NormalForm | None, media: Place
) -> Found | Failure:
    data = reader.render(file, CUT.validate_python(given["cut"]), form=form)
    return data if isinstance(data, Failure) else store_clip(data, media, reader=reader)


def _told(form: NormalForm | None) -> dict[str, Any] | None:
    if form is None:
        return None
    return {
        "width": form.width,
        "height": form.height,
        "rate": str(form.rate),
        "crf": form.crf,
        "sound": form.sound,
    }


def _as_made(piece: Piece, made: MadeClip, form: NormalForm | None) -> Piece:
    start_s = piece.start_s
    traces = carry_traces(
        piece.entry.traces,
        span=TimeSpan(to_us(start_s), to_us(start_s + piece.length_s)),
        view=_view(piece, form),
    )
    return replace(
        piece,
        entry=replace(piece.entry, traces=traces),
        clip=made.clip,
        location=made.location,
        facts=made.facts,
        cut=WHOLE,
        start_s=Fraction(0),
        length_s=made.facts.video.duration_s,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Which window of the old frame is shown, and where in the new one; both in parts of theirs."""

    window: Box = FRAME
    shown_in: Box = FRAME

    def map(self, box: Box) -> Box | None:
        """`box` of the old frame in the new one; None where nothing of it is shown."""
        x0, x1 = (_across(x, self.window.x0, self.window.x1) for x in (box.x0, box.x1))
        y0, y1 = (_across(y, self.window.y0, self.window.y1) for y in (box.y0, box.y1))
        if x0 >= x1 or y0 >= y1:
            return None
        into = self.shown_in
        width, height = into.x1 - into.x0, into.y1 - into.y0
        return Box(
            into.x0 + x0 * width,
            into.y0 + y0 * height,
            min(1.0, into.x0 + x1 * width),
            min(1.0, into.y0 + y1 * height),
        )


def carry_traces(traces: Sequence[Trace], *, span: TimeSpan, view: View) -> tuple[Trace, ...]:
    """`traces` as they are in the piece that shows `view` during `span`; others are let go."""
    return tuple(
        carried for trace in traces if (carried := _carried(trace, span, view)) is not None
    )


def _carried(trace: Trace, span: TimeSpan, view: View) -> Trace | None:
    shared_us = trace.span.overlap_us(span)
    if not shared_us:
        return None
    start_us = max(trace.span.start_us, span.start_us) - span.start_us
    marks = [
        BoxAt(mark.at_us - span.start_us, box)
        for mark in trace.track
        if span.start_us <= mark.at_us < span.end_us and (box := view.map(mark.box)) is not None
    ]
    if trace.track and not marks:
        return None
    return replace(trace, span=TimeSpan(start_us, start_us + shared_us), track=tuple(marks))


def _across(place: float, first: float, last: float) -> float:
    return min(1.0, max(0.0, (place - first) / (last - first)))


def _view(piece: Piece, form: NormalForm | None) -> View:
    crop, video = piece.cut.crop, piece.facts.video
    width, height = video.width, video.height
    window = FRAME
    if crop is not None:
        right, bottom = crop.left + crop.width, crop.top + crop.height
        window = Box(crop.left / width, crop.top / height, right / width, bottom / height)
        width, height = crop.width, crop.height
    if form is None:
        return View(window=window)
    place = fitted(width, height, form)
    return View(
        window=window,
        shown_in=Box(
            place.left / form.width,
            place.top / form.height,
            (place.left + place.width) / form.width,
            (place.top + place.height) / form.height,
        ),
    )


def fitted(width: int, height: int, form: NormalForm) -> Crop:
    """Where `fit_inside` puts a picture of `width` x `height`."""
    scale = min(Fraction(form.width, width), Fraction(form.height, height))
    wide, high = (max(1, round(side * scale)) for side in (width, height))
    return Crop(
        left=(form.width - wide) // 2, top=(form.height - high) // 2, width=wide, height=high
    )
