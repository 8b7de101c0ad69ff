"""From an answer's text to a `TraceVerdict`."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from typing import Final, Literal, TypeVar

from unreel.core.errors import InvalidValueError
from unreel.core.span import to_us
from unreel.core.verdict import TraceVerdict, Unparsed, UnparsedReason
from unreel.protocols.protocol import Mode, Reading
from unreel.protocols.text import (
    SHORT,
    after_thinking,
    first_read,
    json_object,
    tagged,
    unparsed,
)
from unreel.protocols.trace.label import read_label
from unreel.protocols.trace.place import NUMBER, read_box
from unreel.protocols.trace.prompts import SENTENCE_PROMPTS

R = TypeVar("R")
Part = Literal["place", "time", "reason"]

_TAGS: Final = {"place": "coordinates", "time": "start_time", "reason": "explanation"}
_FIELDS: Final[Mapping[Part, tuple[str, ...]]] = {
    "place": ("coordinates", "bbox_2d", "bbox", "box", "box_2d"),
    "time": ("start_time", "start", "onset", "time"),
    "reason": ("explanation", "reason"),
}
_Y_FIRST: Final = "box_2d"
_HEADS: Final[Mapping[Part, str]] = {
    "place": "area|box|bounding box|coordinates|region|location",
    "time": "start|start time|onset|starts at",
    "reason": "why|explanation|reason",
}
_LINES: Final[Mapping[Part, re.Pattern[str]]] = {
    part: re.compile(
        rf"^[\W_]{{0,8}}(?:{heads})[*_ ]{{0,3}}[:=](?P<said>[^\n]{{1,{SHORT}}})$",
        re.IGNORECASE | re.MULTILINE,
    )
    for part, heads in _HEADS.items()
}
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

_SECONDS: Final = re.compile(rf"(?P<seconds>-?{NUMBER})")
_UNIT: Final = (
    r"(?:\s{0,3}(?:s|secs?|seconds?|sekunden?|secondes?|segundos?|secondi|\u79d2|\ucd08)\.?)?"
)
_CLOCK: Final = r"(?:[0-9]{1,3}:)?[0-9]{1,3}:[0-9]{1,2}(?:\.[0-9]{1,12})?"
_ANY_TIME: Final = re.compile(
    rf"(?:(?:at|about|around|approximately|approx\.?|ca\.?|circa|from|~|t\s?=)\s{{0,3}}){{0,2}}(?:(?P<seconds>-?{NUMBER})|(?P<clock>{_CLOCK})){_UNIT}"
    rf"(?:\s{{0,3}}(?:-|\u2013|\u2014|to)\s{{0,3}}(?:{NUMBER}|{_CLOCK}){_UNIT})?(?:\s{{0,3}}\([^()]{{0,40}}\))?\.?",
    re.IGNORECASE,
)
_MILLISECONDS: Final = re.compile(r"(?P<ms>[0-9]{1,9})\s{0,3}(?:ms|milliseconds?)", re.IGNORECASE)
_DECIMAL_COMMA: Final = re.compile(r"(?<=[0-9]),(?=[0-9]{1,2}\s{0,3}[^\W\d])")
_SIXTY: Final = 60


def parse(text: str, reading: Reading) -> TraceVerdict:
    """What `text` says, part by part; a thought is not read, closed or not.

    `strict` wants the form that `reading.prompt` asks for: tags, or the trained sentences; a part given
    twice with different contents is ambiguous. `lenient` reads all that `strict` reads, else either
    form with its usual slips, and the first of several. Boxes are read in `reading.space` and clipped to
    the frame. Times are seconds from the clip's start: a negative one is out of range, one past the
    clip's end is kept as it was said (the scorer caps the distance), NaN and infinity are no numbers.
    """
    space = reading.space
    if space is None:
        msg = "the boxes of a trace need their space. Declare it: Reading(space=declare_space(...))"
        raise InvalidValueError(msg)
    body = after_thinking(text)
    return TraceVerdict(
        label=read_label(body, reading.mode),
        box=_read(body, "place", reading=reading, read=partial(read_box, space=space)),
        start_us=_read(body, "time", reading=reading, read=_read_start),
        explanation=_read(body, "reason", reading=reading, read=lambda piece, _mode: piece),
    )


def _read(
    body: str, part: Part, *, reading: Reading, read: Callable[[str, Mode], R | Unparsed]
) -> R | Unparsed:
    return first_read(
        _read_one(pieces, mode, read=read) for mode, pieces in _found(body, part, reading)
    )


def _found(body: str, part: Part, reading: Reading) -> Iterator[tuple[Mode, list[str]]]:
    forms = [_in_tags, _in_sentences]
    if reading.prompt in SENTENCE_PROMPTS:
        forms.reverse()
    yield "strict", forms[0](body, part, "strict")
    if reading.mode == "lenient":
        for form in (*forms, _in_json, _in_lines):
            yield "lenient", form(body, part, "lenient")


def _in_tags(body: str, part: Part, mode: Mode) -> list[str]:
    return tagged(body, _TAGS[part], mode)


def _in_sentences(body: str, part: Part, mode: Mode) -> list[str]:
    pattern = _REASON[mode] if part == "reason" else _PLACE_AND_TIME[mode]
    pieces = (sentence[part] or "" for sentence in pattern.finditer(body))
    return [piece.strip() for piece in pieces if piece.strip()]


def _in_lines(body: str, part: Part, _mode: Mode) -> list[str]:
    return [found["said"].strip() for found in _LINES[part].finditer(body) if found["said"].strip()]


def _in_json(body: str, part: Part, _mode: Mode) -> list[str]:
    given = json_object(body)
    names = [name for name in _FIELDS[part] if name in given]
    pieces = (
        f"{name}: {_spelled(given[name])}" if name == _Y_FIRST else _spelled(given[name])
        for name in names
    )
    return [piece for piece in pieces if piece.strip()]


def _spelled(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _read_one(
    pieces: list[str], mode: Mode, *, read: Callable[[str, Mode], R | Unparsed]
) -> R | Unparsed:
    if not pieces:
        return Unparsed(UnparsedReason.MISSING)
    if mode == "strict" and len(set(pieces)) > 1:
        return unparsed(UnparsedReason.AMBIGUOUS, pieces[0])
    return read(pieces[0], mode)


def _read_start(piece: str, mode: Mode) -> int | Unparsed:
    if len(piece) > SHORT:
        return unparsed(UnparsedReason.MALFORMED, piece)
    if mode == "lenient" and (short := _MILLISECONDS.fullmatch(piece)):
        return int(short["ms"]) * 1000
    plain = _DECIMAL_COMMA.sub(".", piece) if mode == "lenient" else piece
    found = (_SECONDS if mode == "strict" else _ANY_TIME).fullmatch(plain)
    if found is None:
        return unparsed(UnparsedReason.MALFORMED, piece)
    said = found.groupdict()
    seconds = Fraction(said["seconds"]) if said["seconds"] else _clock_seconds(said["clock"])
    if seconds is None:
        return unparsed(UnparsedReason.MALFORMED, piece)
    return to_us(seconds) if seconds >= 0 else unparsed(UnparsedReason.OUT_OF_RANGE, piece)


def _clock_seconds(clock: str) -> Fraction | None:
    """Seconds of `m:s` or `h:m:s`; `None` where a later field counts sixty or more."""
    first, *later = (Fraction(field) for field in clock.split(":"))
    if any(field >= _SIXTY for field in later):
        return None
    seconds = first
    for field in later:
        seconds = seconds * _SIXTY + field
    return seconds
