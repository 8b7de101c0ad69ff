"""Parser of the onset of a trace, the time at which it begins, in answers of the protocol `trace`."""

# ruff: noqa: RUF001  words of other languages

import re
from fractions import Fraction

from unreel.core.span import convert_to_microseconds
from unreel.core.verdict import Unparsed, UnparsedReason
from unreel.protocols.answer_text import SHORT, strip_markup
from unreel.protocols.claim_words import replace_number_words
from unreel.protocols.protocol import Mode
from unreel.protocols.trace.box_parser import NUMBER

_SECONDS = re.compile(rf"-?{NUMBER}")
_AFTER_UNIT = r"(?![A-Za-z\u00c0-\u024f\u0400-\u04ff])"
_MINUTE = rf"\s{{0,3}}(?:minutos?|minut[ie]|minutes?|minuten?|mins?|m|мин\w{{0,3}}|分钟?|分鐘|분|دقيقة|دقائق){_AFTER_UNIT}"
_SECOND = (
    r"(?:[\s-]{0,3}(?:seconds?|secs?|sekunden?|sek|secondes?|segundos?|seg|second[oi]|s|секунд\w{0,2}|сек|с|秒钟?|秒鐘|초|(?:ال)?ثانية|(?:ال)?ثواني|ثوان|ثانيتين)"
    rf"{_AFTER_UNIT}|\s?[\"\u2033\u201d])"
)
_MILLI = rf"\s{{0,3}}(?:milliseconds?|millisekunden?|milisegundos?|millisecondes?|ms|мс|毫秒|밀리초){_AFTER_UNIT}"
_THOUSANDS = re.compile(
    rf"(?<![\w.,])(?<!frame\s)(?<!clip\s)(?<!video\s)[1-9][0-9]{{0,2}}(?:[,.'\u2019\s][0-9]{{3}})+(?={_MILLI})",
    re.IGNORECASE,
)
"""Milliseconds with thousands separators: a mark and three digits are not a fraction, because 1.2 ms is not a plausible onset."""
_CLOCK = r"(?<![\d:])(?:[0-9]{1,3}:)?[0-9]{1,3}:[0-9]{1,2}(?:\.[0-9]{1,12})?(?![\d:])"
_TIME = re.compile(
    rf"(?P<clock>{_CLOCK})"
    rf"|(?<![A-Za-z0-9_.:\u2044])(?P<ms>{NUMBER}){_MILLI}"
    rf"|(?<![A-Za-z0-9_.:\u2044])(?P<minutes>[0-9]{{1,4}})(?:{_MINUTE}|['\u2032])(?:\s{{0,3}}(?:and\s|und\s|et\s|y\s|e\s|и\s)?(?P<rest>{NUMBER})(?:{_SECOND}|(?![\w.]|\s\w)))?"
    rf"|(?<![A-Za-z0-9_.:\u2044])(?P<from>-?{NUMBER})(?:\s{{0,3}}(?:-|\u2013|\u2014|~|\u301c|至|到|から|에서)\s{{0,3}}|\s(?:to|and|until|bis|und|à|et|a|y|e|до|и|إلى|و)\s{{0,2}})(?:{NUMBER}){_SECOND}"
    rf"|(?<![A-Za-z0-9_.:\u2044])(?P<seconds>-?{NUMBER}){_SECOND}"
)
_FRAMES = re.compile(
    rf"\b(?:frames?|bild|cuadro|fotograma|image|quadro|кадр\w?)\s{{0,2}}#?\s?{NUMBER}|第\s?{NUMBER}\s?(?:帧|幀|フレーム)|{NUMBER}\s?(?:프레임|フレーム|帧)"
    rf"|(?<![\w.]){NUMBER}\s?(?:fps|frames?\b|hz|%)",
    re.IGNORECASE,
)
_OF_ALL = re.compile(
    r"(?:\b(?:of|out\sof|von|de|sur|su|из|for|lasting|lasts|during|within|over|long|every|duration|after\sanother)|/)\s{0,3}(?:the\s|a\s|an?other\s)?$",
    re.IGNORECASE,
)
"""Words before a duration, which is not a timestamp."""
_ELSEWHERE = re.compile(
    r"\b(?:before\sthe\send|from\sthe\send|remaining|left|last|final|per\ssecond|or|either|not|never|unknown|unclear|first\s\d)\b"
    r"|最后|最後|前\d|마지막|或|または|또는",
    re.IGNORECASE,
)
_BARE = re.compile(
    rf"(?:(?:at|about|around|approximately|approx\.?|roughly|ca\.?|circa|from|near|starting|starts?|begins?|after|onset|~|\u2248|\u223c|t\s?=|time|timestamp|second|sec|etwa|ungefähr|gegen|ab|bei|nach"
    rf"|alrededor\sde|aproximadamente|unos|hacia|desde|a\slos|environ|vers|à|cerca\sde|por\svolta\sde|verso|около|примерно|约|大约|約|およそ|약|대략|حوالي|عند|between|von|entre|tra)\W{{0,3}}){{0,3}}"
    rf"(?P<seconds>-?{NUMBER})"
    rf"(?:(?:\s{{0,3}}[-\u2013\u2014至到]\s{{0,3}}|\s(?:to|and|until|bis|und|à|y|e|до)\s){NUMBER})?(?:\s{{0,3}}\([^()]{{0,40}}\))?(?:\W{{0,3}}(?:approx\.?|ish|or\sso|onwards?))?(?!\s?%)[^\w%]{{0,3}}",
    re.IGNORECASE,
)
_HALVES = (
    (re.compile(r"\bhalf\sa\ssecond|\beine\shalbe\ssekunde|半秒", re.IGNORECASE), "0.5 s"),
    (re.compile(r"(?<=[0-9])\s(?:and\sa\shalf|ein\s?halb|y\smedio|et\sdemi)\b", re.IGNORECASE), ".5"),
    (re.compile(r"(?P<n>[0-9])秒半"), r"\g<n>.5秒"),
)  # fmt: skip
_DECIMAL_COMMA = re.compile(
    r"(?<=[0-9])[,\u066b](?=[0-9]{1,3}(?:\s{0,3}(?:[^\W\d]|$|[-\u2013)~])|\.$))"
)
_MINUS = re.compile(r"[\u2212\u2012](?=[0-9])")
_SIXTY = 60
_STARTING = re.compile(
    r"(?:\b(?:start(?:s|ing|ed)?|begin(?:s|ning)?|from|onset|first\s(?:visible|appears|seen)|at|around|after|ab|desde|dès|da|с)|从|在|第|约|大约|約)\s{0,3}"
    rf"(?P<time>(?:(?:at|about|around|from|roughly|approximately|etwa|environ)\s){{0,2}}~?\s?(?:{_CLOCK}|{NUMBER}(?:\s?[-\u2013]\s?{NUMBER})?{_SECOND}|{NUMBER}{_MILLI}))",
    re.IGNORECASE,
)


def parse_trace_onset(piece: str, mode: Mode) -> int | Unparsed:
    """Parse the onset of a trace, in microseconds after the clip's start.

    Of a time range, the beginning counts. `strict` accepts only a number of seconds. `lenient` also
    accepts units, clock times and words of several languages. A frame number is not accepted.
    """
    seconds = None
    if len(piece) <= SHORT:
        if _SECONDS.fullmatch(piece):
            seconds = Fraction(piece)
        elif mode == "lenient":
            seconds = _parse_loose_seconds(piece)
    if seconds is None:
        return Unparsed.of(UnparsedReason.MALFORMED, piece)
    if seconds < 0:
        return Unparsed.of(UnparsedReason.OUT_OF_RANGE, piece)
    return convert_to_microseconds(seconds)


def _parse_loose_seconds(piece: str) -> Fraction | None:
    plain = _remove_thousands_separators(_MINUS.sub("-", strip_markup(piece)).strip())
    plain = replace_number_words(plain)
    for pattern, digits in _HALVES:
        plain = pattern.sub(digits, plain)
    plain = _DECIMAL_COMMA.sub(".", plain)
    if bare := _BARE.fullmatch(plain):
        return Fraction(bare["seconds"])
    if _ELSEWHERE.search(plain):
        return None
    plain = _FRAMES.sub(" ", plain)
    for match in _TIME.finditer(plain.lower()):
        if not _OF_ALL.search(plain, max(0, match.start() - 30), match.start()):
            return _convert_to_seconds(match)
    return None


def find_onset_texts(text: str) -> list[str]:
    """Return the parts of `text` that state when something begins, each with its unit."""
    plain = _remove_thousands_separators(strip_markup(text))
    return [match["time"] for match in _STARTING.finditer(plain)]


def _remove_thousands_separators(text: str) -> str:
    return _THOUSANDS.sub(lambda number: re.sub(r"\D", "", number[0]), text)


def _convert_to_seconds(match: re.Match[str]) -> Fraction | None:
    parts = match.groupdict()
    if parts["clock"]:
        clock = parts["clock"]
        first, *later = (Fraction(field) for field in clock.split(":"))
        if any(field >= _SIXTY for field in later):
            return None
        seconds = first
        for field in later:
            seconds = seconds * _SIXTY + field
        return seconds
    if parts["ms"]:
        return Fraction(parts["ms"]) / 1000
    if parts["minutes"]:
        return Fraction(parts["minutes"]) * _SIXTY + Fraction(parts["rest"] or 0)
    return Fraction(parts["from"] or parts["seconds"])
