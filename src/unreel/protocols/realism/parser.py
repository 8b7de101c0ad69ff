"""From an answer's text to a `RealismVerdict`."""

import re
from collections.abc import Iterator
from typing import Final, Literal

from unreel.core.judgement import ErrorFamily
from unreel.core.verdict import RealismVerdict, Unparsed, UnparsedReason
from unreel.protocols.protocol import Mode, Reading
from unreel.protocols.realism.prompts import FAMILY_PROMPTS, FREE_PROMPTS, TERMS, VERBAL_PROMPTS
from unreel.protocols.text import (
    SHORT,
    after_thinking,
    first_read,
    is_no_answer,
    json_object,
    tagged,
    unparsed,
    unwrapped,
)

Reason = Literal["problem", "adherence"]

_INTEGERS: Final = {str(score): score for score in range(1, 6)}
_TERMS: Final = {term: score for score, term in enumerate(TERMS, start=1)}
_TERM: Final = "|".join(TERMS)
_WORDS: Final = {word: n for n, word in enumerate(("one", "two", "three", "four", "five"), start=1)}
# "3", "3.0", "3\u5206", "five", "Normal"; the 5 of "3/5" and "out of 5" is the scale.
_SCALE: Final = re.compile(r"(?:/|\bout\sof\b)\s{0,3}(?:5|five)(?!\w)", re.IGNORECASE)
_SCORE: Final = re.compile(
    rf"(?<![\w.-])(?:(?P<digit>[1-5])(?:\.0{{1,3}})?(?![0-9A-Za-z_]|\.[0-9])"
    rf"|(?P<word>one|two|three|four|five)\b|(?P<term>{_TERM})\b)",
    re.IGNORECASE,
)
_STATED: Final = re.compile(
    r"(?:\b(?:score|rating|answer|rate|rated|give|grade|nota|note|puntuación|punteggio|bewertung|оценка)\b"
    r"|得分|评分|분수|점수)[^.!?\d\n]{0,40}[1-5](?:\.0{1,3})?(?:\s{0,3}/\s{0,3}5)?"
    rf"[*\"'\s(]{{0,5}}(?:{_TERM})?[)*\"']{{0,5}}(?=[.!\s]{{0,3}}(?:$|\n))",
    re.IGNORECASE,
)
_BARE: Final = re.compile(
    r"[\W_]{0,20}(?:\b(?:final|score|rating|answer|overall|is|the)\b[\W_]{0,5}){0,5}\u5206?[\W_]{0,10}",
    re.IGNORECASE,
)
_ANY_NUMBER: Final = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?")
_NOT_BUT: Final = re.compile(r"\bnot\s(?:an?\s)?\w{1,10}\sbut\b", re.IGNORECASE)
_DENIED: Final = re.compile(r"\b(?:not|no|isn['\u2019]t|neither|nor|between)\b", re.IGNORECASE)
_NUMBER: Final = re.compile(r"[-+]?[0-9]{1,12}")

_HEADS: Final = {
    "strict": re.compile(r"(?P<problem>Problem Description:)|(?P<adherence>Standard Adherence:)"),
    "lenient": re.compile(
        r"(?:#{1,4}\s)?[*_]{0,3}(?:(?P<problem>problem\s{1,3}description)|(?P<adherence>standard\s{1,3}adherence))"
        r"[*_\s]{0,3}:[*_]{0,3}",
        re.IGNORECASE | re.ASCII,
    ),
}
Family = ErrorFamily | Literal["none"]
_KNOWN: Final[dict[str, Family]] = {
    "none": "none",
    **{family.value: family for family in ErrorFamily},
}
_LETTERS: Final = re.compile(r"[a-z]+")
_FAMILY: Final = re.compile(
    r"<\s{0,3}family\s{0,3}>[^<]{0,200}(?:<\s{0,3}/\s{0,3}family\s{0,3}>)?",
    re.IGNORECASE | re.ASCII,
)
_REASONS_END: Final = re.compile(r"</think>|<answer>", re.IGNORECASE | re.ASCII)


def parse(text: str, reading: Reading) -> RealismVerdict:
    """The score of the last `<answer>` that holds one, and the two reasons where they are headed.

    `strict` takes an integer from 1 to 5, or one of the five terms when a verbal variant was asked.
    `lenient` takes all of that, the two forms mixed, an unclosed tag, and an answer that is nothing
    but the score. A number outside 1 to 5 is out of range; a fraction is malformed, never rounded.
    Where free thoughts were asked for, a thought without headings is the problem as a whole.
    """
    asks = reading.prompt in FAMILY_PROMPTS
    return RealismVerdict(
        score=first_read(_scores(_FAMILY.sub("", text) if asks else text, reading)),
        problem=first_read(_problems(text, reading)),
        adherence=first_read(_reasons(text, "adherence", reading.mode)),
        family=first_read(_families(text, reading.mode)) if asks else None,
    )


def _families(text: str, mode: Mode) -> Iterator[Family | Unparsed]:
    """The last term in its tag; `lenient` takes other cases, blanks for hyphens and a missing plural."""
    body = after_thinking(text).strip()
    pieces = tagged(body, "family", "strict")
    yield _family(pieces[-1]) if pieces else Unparsed(UnparsedReason.MISSING)
    if mode == "lenient" and (pieces := tagged(unwrapped(body), "family", "lenient")):
        words = "-".join(_LETTERS.findall(pieces[-1][:SHORT].lower()))
        yield _family(words if words in _KNOWN else f"{words}s")


def _family(piece: str) -> Family | Unparsed:
    return _KNOWN.get(piece, unparsed(UnparsedReason.MALFORMED, piece))


def _scores(text: str, reading: Reading) -> Iterator[int | Unparsed]:
    asked = _TERMS if reading.prompt in VERBAL_PROMPTS else _INTEGERS
    body = after_thinking(text).strip()
    pieces = tagged(body, "answer", "strict")
    yield asked.get(pieces[-1], _refuse(pieces)) if pieces else _refuse(pieces)
    if reading.mode == "lenient":
        plain = unwrapped(body).strip()
        if pieces := tagged(plain, "answer", "lenient"):
            yield _loose_score(pieces[-1])
        elif "score" in (given := json_object(body)):
            yield _loose_score(str(given["score"]))
        elif plain and not is_no_answer(plain):
            stated = [found[0] for found in _STATED.finditer(plain)]
            if stated or _BARE.fullmatch(_SCORE.sub("", _SCALE.sub("", plain[:SHORT]))):
                yield _loose_score(stated[-1] if stated else plain)


def _refuse(pieces: list[str]) -> Unparsed:
    if not pieces:
        return Unparsed(UnparsedReason.MISSING)
    out_of_range = _NUMBER.fullmatch(pieces[-1]) and pieces[-1] not in _INTEGERS
    reason = UnparsedReason.OUT_OF_RANGE if out_of_range else UnparsedReason.MALFORMED
    return unparsed(reason, pieces[-1])


def _loose_score(piece: str) -> int | Unparsed:
    if len(piece) > SHORT or _DENIED.search(_NOT_BUT.sub("", piece)):
        return _refuse([piece])
    bare = _SCALE.sub("", _NOT_BUT.sub("", piece))
    found = list(_SCORE.finditer(bare))
    said = {_value(score) for score in found}
    n_numbers = len(_ANY_NUMBER.findall(bare))
    if len(said) > 1 or n_numbers > sum(score["digit"] is not None for score in found):
        return _refuse([piece]) if len(said) <= 1 else unparsed(UnparsedReason.AMBIGUOUS, piece)
    return said.pop() if said else _refuse([piece])


def _value(score: re.Match[str]) -> int:
    if score["digit"]:
        return int(score["digit"])
    return _WORDS[score["word"].lower()] if score["word"] else _TERMS[score["term"].capitalize()]


def _problems(text: str, reading: Reading) -> Iterator[str | Unparsed]:
    yield from _reasons(text, "problem", reading.mode)
    ends = _REASONS_END.search(text)
    if reading.prompt in FREE_PROMPTS and ends:
        thought = text[: ends.start()].strip().removeprefix("<think>").strip()
        yield thought or Unparsed(UnparsedReason.MISSING)


def _reasons(text: str, reason: Reason, mode: Mode) -> Iterator[str | Unparsed]:
    yield _reason(text, reason, "strict")
    if mode == "lenient":
        yield _reason(text, reason, "lenient")


def _reason(text: str, reason: Reason, mode: Mode) -> str | Unparsed:
    """What follows the last heading of `reason`, up to the next heading or the end of the thought."""
    start, end = None, len(text)
    for head in _HEADS[mode].finditer(text):
        if head[reason]:
            start, end = head.end(), len(text)
        elif start is not None and end == len(text):
            end = head.start()
    if start is None:
        return Unparsed(UnparsedReason.MISSING)
    thought_ends = _REASONS_END.search(text, start, end)
    said = text[start : thought_ends.start() if thought_ends else end].strip()
    return said or Unparsed(UnparsedReason.MISSING)
