"""From an answer's text to a `TraceVerdict`."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, Literal, TypeVar

from unreel.core.errors import InvalidValueError
from unreel.core.judgement import Label
from unreel.core.verdict import TraceVerdict, Unparsed, UnparsedReason
from unreel.protocols.field_parser import parse_fields
from unreel.protocols.protocol import Mode, ParserOptions
from unreel.protocols.text import (
    build_unparsed,
    find_tagged,
    parse_first,
    strip_markup,
    strip_thinking,
)
from unreel.protocols.trace.box_parser import find_boxes, read_box
from unreel.protocols.trace.label_parser import read_label
from unreel.protocols.trace.onset_parser import find_onsets, read_onset
from unreel.protocols.trace.prompts import SENTENCE_PROMPTS

R = TypeVar("R")
Part = Literal["place", "time", "reason"]

_TAGS: Final = {"place": "coordinates", "time": "start_time", "reason": "explanation"}
_Y_FIRST: Final = "box_2d"
_LONGEST: Final = 20_000
"""A longer text is not searched for a place and a time outside every form."""
_PLACE_AND_TIME: Final = {
    "strict": re.compile(
        r"The unnatural part is at (?P<place>\[[^\[\]]{0,100}\])"
        r"(?: starting (?P<time>\S{1,30}) seconds)?"
    ),
    "lenient": re.compile(
        r"unnatural\s{1,3}parts?\s{1,3}(?:is|are)\s{1,3}(?:at\s{1,3})?"
        r"(?P<place>[\[(][^\[\]()]{0,100}[\])])"
        r"(?:[,;]?\s{1,3}starting\s{1,3}(?:(?:at|from)\s{1,3})?"
        r"(?P<time>[^,;\n]{1,40}?)(?=\.\s|\.?$|[,;\n]))?",
        re.IGNORECASE | re.ASCII,
    ),
}
_REASON: Final = {
    "strict": re.compile(r"The reason is because (?P<reason>.+)", re.DOTALL),
    "lenient": re.compile(
        r"\bthe\s{1,3}reason\s{1,3}is\s{1,3}(?:because|that)\s{1,3}(?P<reason>.+)",
        re.DOTALL | re.IGNORECASE | re.ASCII,
    ),
}


def parse(text: str, reading: ParserOptions) -> TraceVerdict:
    """Parse `text` part by part; thoughts are ignored, closed or not.

    `strict` wants the form that `reading.prompt` asks for: tags, or the trained sentences; a part given
    twice with different contents is ambiguous. `lenient` reads all that `strict` reads, else either
    form with its usual slips, and the first of several. Boxes are read in `reading.space` and clipped to
    the frame. Times are seconds from the clip's start: a negative one is out of range, one past the
    clip's end is kept as it was said (the scorer caps the distance), NaN and infinity are no numbers.
    """
    space = reading.space
    if space is None:
        msg = "the boxes of a trace need their space. Declare it: ParserOptions(space=declare_space(...))"
        raise InvalidValueError(msg)
    body = strip_thinking(text)
    place = partial(read_box, space=space)
    label = read_label(body, reading.mode)
    tells_more = reading.mode == "lenient" and label is Label.GENERATED
    told = strip_markup(body) if tells_more and len(body) <= _LONGEST else ""
    return TraceVerdict(
        label=label,
        box=_parse_prose_fallback(
            _parse_part(body, "place", reading=reading, read=place), find_boxes(told), place
        ),
        start_us=_parse_prose_fallback(
            _parse_part(body, "time", reading=reading, read=read_onset),
            find_onsets(told),
            read_onset,
        ),
        explanation=_parse_part(body, "reason", reading=reading, read=lambda piece, _mode: piece),
    )


def _parse_prose_fallback(
    formal: R | Unparsed, pieces: list[str], read: Callable[[str, Mode], R | Unparsed]
) -> R | Unparsed:
    """Return the value from free prose, if it occurs once and no formal part contains it."""
    if not isinstance(formal, Unparsed) or formal.reason is not UnparsedReason.MISSING:
        return formal
    readings = {
        told for piece in pieces if not isinstance(told := read(piece, "lenient"), Unparsed)
    }
    return readings.pop() if len(readings) == 1 else formal


def _parse_part(
    body: str, part: Part, *, reading: ParserOptions, read: Callable[[str, Mode], R | Unparsed]
) -> R | Unparsed:
    return parse_first(
        _read_one(pieces, mode, read=read)
        for mode, pieces in _iter_part_pieces(body, part, reading)
    )


def _iter_part_pieces(
    body: str, part: Part, reading: ParserOptions
) -> Iterator[tuple[Mode, list[str]]]:
    forms = [_list_tag_pieces, _list_sentence_pieces]
    if reading.prompt in SENTENCE_PROMPTS:
        forms.reverse()
    yield "strict", forms[0](body, part, "strict")
    if reading.mode == "lenient":
        for form in (*forms, _list_field_pieces):
            yield "lenient", form(body, part, "lenient")


def _list_tag_pieces(body: str, part: Part, mode: Mode) -> list[str]:
    return find_tagged(body, _TAGS[part], mode)


def _list_sentence_pieces(body: str, part: Part, mode: Mode) -> list[str]:
    pattern = _REASON[mode] if part == "reason" else _PLACE_AND_TIME[mode]
    pieces = (sentence[part] or "" for sentence in pattern.finditer(body))
    return [piece.strip() for piece in pieces if piece.strip()]


def _list_field_pieces(body: str, part: Part, _mode: Mode) -> list[str]:
    return [
        f"{field.name}: {field.value}" if field.name == _Y_FIRST else field.value
        for field in parse_fields(strip_markup(body))
        if field.kind == part and field.value and (part != "reason" or field.value in body)
    ]


def _read_one(
    pieces: list[str], mode: Mode, *, read: Callable[[str, Mode], R | Unparsed]
) -> R | Unparsed:
    if not pieces:
        return Unparsed(UnparsedReason.MISSING)
    if mode == "strict" and len(set(pieces)) > 1:
        return build_unparsed(UnparsedReason.AMBIGUOUS, pieces[0])
    return read(pieces[0], mode)
