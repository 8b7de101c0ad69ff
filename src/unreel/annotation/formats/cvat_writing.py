"""CVAT for video 1.1, written: one file for each video, as CVAT has one task for each."""

from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape, quoteattr

from unreel.annotation.formats.cvat import MASK
from unreel.annotation.formats.document import ForeignTrack, ForeignVideo, KeyFrameBox
from unreel.annotation.formats.naming import file_names
from unreel.benchmarks.entry import Rejected
from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.core.plain import plain_lines
from unreel.core.writing import OutputDirectory


def write_cvat(videos: Iterable[ForeignVideo], folder: OutputDirectory) -> Iterator[Rejected]:
    """Write `NAME.xml` for each video; report and skip items that CVAT does not support."""
    for video, name in file_names(videos, "xml"):
        try:
            size = video.require_size()
            video.require_frames()
        except InvalidValueError as error:
            yield Rejected(video.name, str(error))
            continue
        if video.said:
            yield Rejected(video.name, "CVAT keeps no answers about a whole video. Keep the source")
        placed = [track for track in video.tracks if _is_placed(track)]
        with folder.create_text(name) as file:
            file.writelines(_lines(video, placed, size))
        for track in video.tracks:
            if not _is_placed(track):
                why = "CVAT keeps no track without boxes. Keep the source"
                yield Rejected(f"{video.name}: track {track.id}", why)


def _is_placed(track: ForeignTrack) -> bool:
    return bool(track.marks) and all(mark.box is not None for mark in track.marks)


def _lines(
    video: ForeignVideo, tracks: Iterable[ForeignTrack], size: tuple[int, int]
) -> Iterator[str]:
    labels = dict.fromkeys(track.label for track in video.tracks)
    yield '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n'
    yield "<version>1.1</version>\n<meta><task>\n"
    yield f"<name>{_text(video.name)}</name>\n<size>{video.n_frames}</size>\n"
    yield "<mode>interpolation</mode>\n<labels>"
    yield from (f"<label><name>{_text(label)}</name></label>" for label in labels)
    yield "</labels>\n"
    if video.by:
        yield f"<owner><username>{_text(video.by)}</username></owner>\n"
    yield f"<original_size><width>{size[0]}</width><height>{size[1]}</height></original_size>\n"
    yield f"<source>{_text(video.name)}</source>\n</task></meta>\n"
    for track in tracks:
        yield f'<track id={_value(track.id)} label={_value(track.label)} source="manual">\n'
        yield from _boxes(track, size, video.require_frames())
        yield "</track>\n"
    yield "</annotations>\n"


def _boxes(track: ForeignTrack, size: tuple[int, int], n_frames: int) -> Iterator[str]:
    said = "".join(
        f"<attribute name={_value(each.question)}>{_text(answer)}</attribute>"
        for each in track.said
        for answer in each.answers
    )
    for stretch in track.stretches:
        marks = track.marks_in(stretch)
        for mark in marks:
            yield _box(mark, mark.frame, size, outside=False, said=said)
        if stretch.last + 1 < n_frames:
            yield _box(marks[-1], stretch.last + 1, size, outside=True, said=said)


def _box(mark: KeyFrameBox, frame: int, size: tuple[int, int], *, outside: bool, said: str) -> str:
    box = mark.box or Box(0, 0, 1, 1)
    edges = (box.x0 * size[0], box.y0 * size[1], box.x1 * size[0], box.y1 * size[1])
    keys = ("xtl", "ytl", "xbr", "ybr")
    # CVAT itself writes hundredths of a pixel, and reads whatever it is given.
    drawn = " ".join(f'{key}="{edge:.6f}"' for key, edge in zip(keys, edges, strict=True))
    mask = f'<attribute name="{MASK}">{_text(mark.mask)}</attribute>' if mark.mask else ""
    return (
        f'<box frame="{frame}" keyframe="1" outside="{outside:d}" occluded="0" {drawn} '
        f'z_order="0">{said}{mask}</box>\n'
    )


def _text(words: str) -> str:
    return escape(plain_lines(words))


def _value(words: str) -> str:
    return quoteattr(plain_lines(words))
