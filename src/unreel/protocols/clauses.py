"""Clauses of a text, and their effect on others: contradiction, supposition, or a first thought."""

# ruff: noqa: RUF001  words of other languages

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from unreel.protocols import claim_words

_AND: Final = (
    r"and\s(?=(?:it|its|this|that|these|the|i|we|my|so|thus|therefore|hence|looks?|appears?|seems?|is|feels|was|must|should|reads|comes|conclude|believe"
    r"|consider|judge|think|would|rate|call|overall|everything)\b)"
    r"|und\s(?=(?:wirkt|ist|sieht|scheint|das|es|die|dieses|der|ich|daher|deshalb|somit|halte)\b)"
    r"|[ye]\s(?=(?:parece|es|se|luce|resulta|el|la|este|esta|lo|por|creo|considero|sembra|appare|è|il|questo|risulta|penso|é|o|a|esse|aparenta|portanto)\b)"
    r"|et\s(?=(?:semble|paraît|est|c['\u2019]est|la|le|cette|ce|elle|il|je|donc)\b)"
    r"|и\s(?=(?:выглядит|является|это|видео|ролик|кажется|я|поэтому)\b)"
)
_CLAUSE_ENDS: Final = re.compile(
    r"(?P<asks>[?\u061f])|(?P<stops>(?<![0-9])[.:](?=\s|$|['\"*)])|(?<=[0-9])\.(?=\s|$)|[\n;!。؛])|[,()،]|\s[-\u2013\u2014]\s|\u2014"
    r"|(?<=[すまただるくてでめのがら])、"
    r"|(?P<turns>(?=\b(?:but|yet|however|because|since|so|hence|thus|therefore|weil|denn|aber|sondern|daher|pero|porque|sino|mais|car|donc|ma|perché|quindi"
    rf"|mas|porém|но|поэтому|потому|بل|لكن|ولكن|لكنه)\b))|(?P<ands>\b(?:{_AND}))|(?=\b(?:although|though|while|whereas|despite)\b)",
    re.IGNORECASE,
)
_SUPPOSES: Final = re.compile(
    r"\W{0,5}(?:(?:if|unless|suppose|assuming|wenn|falls|si|se|если)\s(?!(?:you|one|we)\s(?:look|watch|pause|zoom|examine|ask|check|study|compare|go)|i\s(?:had|have|must|were)|i(?:\sam|['\u2019]m)\s(?:(?:not|much|very|badly|gravely)\s){0,2}(?:mistaken|wrong)|ich\smich\snicht\sirre|je\sne\sme\strompe|no\sme\sequivoco|non\smi\ssbaglio|tuviera|du\s|man\s)|如果|若|إذا|もし|만약)",
    re.IGNORECASE,
)
_TURNS: Final = re.compile(
    r"\W{0,5}(?:(?:hm+|well|and|und|y|et)\W{1,4})?(?:but|yet|however|hence|thus|therefore|so|actually|wait|correction|corrected|no|rather|instead|overall"
    r"|hold\son|in\sconclusion|to\sconclude|in\ssum\w{0,3}|all\sin\sall|ultimately|in\sthe\send|still|final(?:ly)?|on\s(?:closer|second|reflection|balance|re)"
    r"|scratch\sthat|looking\s(?:again|closer)|my\s(?:final|verdict|answer|conclusion)|verdict|conclusion|answer|after\sall|upon\s(?:closer|further|reflection)"
    r"|i\schange\smy|i\s(?:have\s|now\s|therefore\s|thus\s)?(?:changed?|conclude|settle|revise|retract|withdraw|correct)|let\sme\scorrect"
    r"|aber|doch|jedoch|sondern|daher|also|fazit|insgesamt|pero|sino|sin\sembargo|en\sconclusión|por\s(?:lo\s)?tanto|mais|cependant|donc|pourtant|en\sconclusion"
    r"|ma|tuttavia|quindi|in\sconclusione|mas|porém|portanto|em\sconclusão|но|однако|поэтому|итак|в\sитоге|لكن|ولكن|لذلك|بل|لكنه|لكنها)\b"
    r"|\W{0,5}(?:但|然而|因此|所以|不过|总之|综上|最终|结论|しかし|でも|したがって|結論|よって|하지만|그러나|따라서|결론)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class TextClause:
    """A piece of a sentence that says one thing."""

    text: str
    asks: bool
    opens: Literal["sentence", "turn", "clause"]
    """What separates it from the clause before: only the last lets a denial through."""


def split_clauses(text: str) -> Iterator[TextClause]:
    """Yield the clauses of `text` in order, without blank clauses."""
    start = 0
    opens: Literal["sentence", "turn", "clause"] = "sentence"
    for end in _CLAUSE_ENDS.finditer(text):
        if is_said := bool(text[start : end.start()].strip()):
            yield TextClause(text[start : end.start()], asks=end["asks"] is not None, opens=opens)
            opens = "clause"
        if end["asks"] or end["stops"]:
            opens = "sentence"
        elif end["turns"] is not None or (end["ands"] and is_said):
            opens = "turn" if opens == "clause" else opens
        start = end.end()
    if text[start:].strip():
        yield TextClause(text[start:], asks=False, opens=opens)


def is_contradiction(clause: str) -> bool:
    """Return whether the text contradicts itself or concludes with this clause."""
    return _TURNS.match(clause) is not None


def is_supposition(clause: str) -> bool:
    """Return whether the clause makes the rest of its sentence a supposition."""
    return _SUPPOSES.match(clause) is not None


def is_first_thought(clause: str) -> bool:
    """Return whether the clause describes a first impression."""
    return any(
        form.search(clause) for form in (claim_words.FIRST_THOUGHT, claim_words.FIRST_GLYPHS)
    )
