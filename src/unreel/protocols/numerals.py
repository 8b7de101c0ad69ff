"""Small numbers as words, in the languages of the answers."""

# ruff: noqa: RUF001  words of other languages

import re
from typing import Final

from unreel.protocols.claim_words import LETTER

_SPELLED: Final = (
    "zero zéro cero ноль صفر",
    "one eins uno um один واحد",
    "two zwei deux dos due dois duas два две اثنان اثنين ثانيتان ثانيتين",
    "three drei trois tres tre três три ثلاثة ثلاث",
    "four vier quatre cuatro quattro quatro четыре أربعة اربعة أربع",
    "five fünf cinq cinco cinque пять خمسة خمس",
    "six sechs seis sei шесть ستة",
    "seven sieben sept siete sette sete семь سبعة",
    "eight acht huit ocho otto oito восемь ثمانية",
    "nine neun neuf nueve nove девять تسعة",
    "ten zehn dix diez dieci dez десять عشرة",
)
_GLYPHS: Final = {
    **{glyph: n for n, glyph in enumerate("零一二三四五六七八九十")},
    "〇": 0, "两": 2, "兩": 2, "壱": 1, "弐": 2, "参": 3,
    "일": 1, "이": 2, "삼": 3, "사": 4, "오": 5, "한": 1, "두": 2, "세": 3, "네": 4, "다섯": 5, "여섯": 6,
}  # fmt: skip
_VALUES: Final = {word: n for n, words in enumerate(_SPELLED) for word in words.split()}
_WORD: Final = re.compile(
    rf"(?<![{LETTER}])(?:{'|'.join(sorted(_VALUES, key=len, reverse=True))})(?!['\u2019]?[{LETTER}])",
    re.IGNORECASE,
)
_GLYPH: Final = re.compile(
    rf"(?<![{''.join(set(''.join(_GLYPHS)))}])(?P<glyph>{'|'.join(_GLYPHS)})(?=\s?(?:秒|分|点|點|星|級|级|점|초))"
)


def spell_in_digits(text: str) -> str:
    """Return `text` with its number words from zero to ten replaced by digits.

    Chinese, Japanese and Korean numerals are replaced only if they are the whole text or precede a
    unit.
    """
    if (alone := text.strip()) in _GLYPHS:
        return str(_GLYPHS[alone])
    plain = _WORD.sub(lambda word: str(_VALUES[word[0].lower()]), text)
    return _GLYPH.sub(lambda found: str(_GLYPHS[found["glyph"]]), plain)
