"""What prose says of a clip, real or generated, with its denials, doubts and second thoughts.

A text is cut into clauses. A clause that asks, supposes, concedes or doubts claims nothing; a denial
turns its claim round; a later claim goes before an earlier one only where the text turns against
itself in between ("yet", "actually", "hence"). What is left must agree.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from unreel.core.judgement import Label
from unreel.core.verdict import Unparsed, UnparsedReason
from unreel.protocols.text import unparsed, unwrapped

_REAL: Final = "real|filmed|genuine|authentic|echt(?:e[mnrs]?)?|réelle?|vraie?|véritable|auténtic[oa]|verdader[oa]|vero|autentic[oa]"
_GENERATED: Final = (
    r"fake|faked|deepfake|synthetic|artificial|generated|"
    r"(?:ai|computer|machine|ki|ia)[\s-](?:generated|made|created|produced|generiert|synthesi[sz]ed)|"
    r"gefälscht|künstlich|généré[e]?|faux|fausse|fals[oa]|generad[oa]|generat[oa]"
)
_LETTER: Final = r"0-9A-Za-z_\u00c0-\u024f"
"""Chinese writes no blanks around a borrowed word, so its characters end one."""
_WORD: Final = re.compile(
    rf"(?<![{_LETTER}-])(?:(?P<real>{_REAL})|(?P<generated>{_GENERATED}))(?![{_LETTER}-]|\s(?:time|world)\b)"
    r"|(?P<real_han>真实|真的|实拍|本物|実写|진짜|настоящ\w{0,4})"
    r"|(?P<generated_han>假|伪造|偽|合成|(?:由)?(?:人工智能|AI)?生成|가짜|поддельн\w{0,4}|сгенерирован\w{0,4})",
    re.IGNORECASE,
)
_CAPITAL: Final = re.compile(r"REAL|FAKE")
_HAN: Final = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")

_CLAUSE_ENDS: Final = re.compile(
    r"(?P<asks>\?)|(?<![0-9])[.:](?=\s|$|['\"*)])|(?<=[0-9])\.(?=\s|$)|[\n;!,()。]|\s[-\u2013\u2014]\s"
    r"|(?=\b(?:but|yet|however|although|though|because|since|while|whereas|despite|so|hence|thus|therefore)\b)",
    re.IGNORECASE,
)
_CONCEDES: Final = re.compile(
    r"\W{0,5}(?:even\s)?(?:although|though|while|whereas|despite|in\sspite|albeit|obwohl|aunque|bien\sque"
    r"|if|had|were|unless|suppose|assuming|falls|wenn|si|虽然|尽管|如果)\b|\W{0,5}(?:虽然|尽管|如果)",
    re.IGNORECASE,
)
_TURNS: Final = re.compile(
    r"\W{0,5}(?:but|yet|however|hence|thus|therefore|so|actually|wait|correction|no|rather|instead|overall"
    r"|in\sconclusion|final(?:ly)?|on\s(?:closer|second|reflection)|scratch\sthat|looking\sagain|verdict|conclusion|answer"
    r"|i\schange\smy|i\shave\schanged\smy|let\sme\scorrect)\b|\W{0,5}(?:但|然而|因此|所以)",
    re.IGNORECASE,
)
_DOUBTS: Final = re.compile(
    r"\b(?:whether|if|maybe|perhaps|possibly|might|may|could\s(?:be|also)|either|ob"
    r"|would\s(?:be|mean|look|seem|have|indicate)"
    r"|unclear|unsure|uncertain|inconclusive|undecided|insufficient)\b"
    r"|\bnot\s(?:enough|sure|certain|possible|clear)\b|\b(?:do\snot|don['\u2019]t)\sknow\b"
    r"|\b(?:can(?:not|['\u2019]t|\snot)|could(?:\snot|n['\u2019]t)|unable\sto|not\sable\sto|impossible\sto"
    r"|hard\sto|difficult\sto)\s(?:\w{1,20}\s){0,2}"
    r"(?:say|tell|determine|decide|judge|know|verify|confirm|assess|conclude|be|help|assist|rule)\b"
    r"|是否|也许|可能",
    re.IGNORECASE,
)
_WOULD_SAY: Final = re.compile(
    r"\b(?:i|we)\swould\s(?:\w{1,12}\s)?(?:say|call|judge|label|conclude)", re.IGNORECASE
)
_DENIES: Final = re.compile(
    r"\bnão\shá\snada\b|\bno\shay\snada\b|\bn['\u2019]y\sa\srien\b|\bnon\sc['\u2019]è\snulla\b|\bnothing\b|\bnichts\b"
    r"|\bn['\u2019]\w{1,12}\spas\b|\bne\s\w{1,12}\spas\b|\bfar\sfrom\b|\banything\sbut\b|\bfails\sto\b"
    r"|n['\u2019]t\b|\b(?:not|no|non|nor|never|neither|none|nothing|without|hardly|barely|scarcely|unlikely"
    r"|improbable|doubtful|doubt|lacks?|nicht|keine?s?|kaum|pas|rien|nunca|jamais|ni|não|niet|geen|nie|inte|ikke"
    r"|ei|není|bukan|tidak|không)\b|\b\u043d\u0435\b|不|没|沒|非|未|ليس",
    re.IGNORECASE,
)
_DENIES_AFTER: Final = re.compile(
    r"[がはもを이가은는]?\s{0,2}(?:では?な[いく]|ではありません|じゃな[いく]|아니|아닙|않|değil|नहीं|it\sis\snot)",
    re.IGNORECASE,
)
_REPORTS: Final = re.compile(
    r"\b(?:claim|idea|notion|theory|suspicion|allegation|assumption|argument)s?\s(?:that|of)\b",
    re.IGNORECASE,
)
"""What somebody says is not what the text says, unless it goes on to deny it."""
_OR: Final = re.compile(
    r"\W{0,5}(?:(?:or|and|vs\.?|versus|nor|oder|ou|o|或)\b)?\W{0,5}", re.IGNORECASE
)
_OF_PARTS: Final = re.compile(
    r"\b(?:parts?|some|portions?|areas?|regions?|elements?|aspects?|sections?|details?|many|few)\b",
    re.IGNORECASE,
)
_SUBJECT: Final = re.compile(
    r"(?<!of\s)\b(?:video|clip|footage|recording|film|movie|sequence|content|it|this|that|verdict|answer"
    r"|conclusion|judge?ment|classification|label|result|i|we|vid[eé]o|vídeo|filmato|aufnahme|esto|ce|cette|das|es)\b",
    re.IGNORECASE,
)
_LITTLE: Final = re.compile(
    r"(?:\W{0,5}\b(?:and|so|but|yet|thus|hence|therefore|however|overall|clearly|definitely|certainly|likely"
    r"|probably|most|very|highly|not|is|are|looks?|appears?|seems?|to|be|a|an|the|rather|actually|wait|no"
    r"|correction|final|an?swer|verdict)\b){0,6}\W{0,8}",
    re.IGNORECASE,
)
_FOLLOWS: Final = re.compile(
    r"\W{0,5}(?:$|(?P<clip>\b(?:video|clip|footage|recording|film|movie|sequence|content|one|vid[eé]o|vídeo)\b)"
    r"|\b(?:because|since|as|and|or|due|based|by|with|from|using|enough|i|rather|not|were|was|is)\b)|[^\w\s]",
    re.IGNORECASE,
)


_READ: Final = 10_000
"""Of a longer text the two ends are read: an answer says at one of them what it claims."""
_REACH: Final = 200
"""How far before a word of its clause a denial or a doubt may stand: longer is no clause."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A piece of a sentence that says one thing."""

    text: str
    asks: bool


def read_claim(text: str) -> Label | Unparsed:
    """The side that `text` takes: missing where it speaks of none, ambiguous where it takes none."""
    chosen: Label | None = None
    turned = divided = spoken = False
    for clause in clauses(unwrapped(_ends_of(text))):
        turned |= _TURNS.match(clause.text) is not None
        words = list(_WORD.finditer(clause.text))
        telling = [word for word in words if _speaks_of_the_clip(word)]
        spoken |= bool(telling)
        open_ended = clause.asks or _CONCEDES.match(clause.text) or _offers_both(words)
        label = None if open_ended else _claim(telling)
        if label is None:
            continue
        divided = chosen not in {None, label} and not turned
        chosen, turned = label, False
    if chosen is not None and not divided:
        return chosen
    return unparsed(UnparsedReason.AMBIGUOUS if spoken else UnparsedReason.MISSING, text)


def _ends_of(text: str) -> str:
    return text if len(text) <= 2 * _READ else f"{text[:_READ]}\n{text[-_READ:]}"


def clauses(text: str) -> Iterator[Clause]:
    """The clauses of `text`, in order; blank ones are left out."""
    start = 0
    for end in _CLAUSE_ENDS.finditer(text):
        if text[start : end.start()].strip():
            yield Clause(text[start : end.start()], asks=end["asks"] is not None)
        start = end.end()
    if text[start:].strip():
        yield Clause(text[start:], asks=False)


def _offers_both(words: Sequence[re.Match[str]]) -> bool:
    """Whether two of the words are alternatives, as in `real or fake`."""
    return any(
        _OR.fullmatch(now.string, now.end(), after.start()) for now, after in pairwise(words)
    )


def _claim(words: Iterable[re.Match[str]]) -> Label | None:
    """What a clause claims with these words of it."""
    said = {label for word in words if (label := _label_of(word)) is not None}
    return said.pop() if len(said) == 1 else None


def _label_of(word: re.Match[str]) -> Label | None:
    before = _before(word)
    after = word.string[word.end() : word.end() + _REACH]
    if _REPORTS.search(before):
        return _other(_named(word)) if _DENIES.search(after) else None
    doubts = _DOUBTS.search(before) is not None and _WOULD_SAY.search(before) is None
    denials = len(_DENIES.findall(before)) + bool(_DENIES_AFTER.match(word.string, word.end()))
    if doubts or denials > 1 or _OF_PARTS.search(before):
        return None
    return _other(_named(word)) if denials else _named(word)


def _named(word: re.Match[str]) -> Label:
    return Label.REAL if word["real"] or word["real_han"] else Label.GENERATED


def _speaks_of_the_clip(word: re.Match[str]) -> bool:
    if word["real_han"] or word["generated_han"]:
        return True
    after = _FOLLOWS.match(word.string, word.end())
    if after is None and not _CAPITAL.fullmatch(word[0]):
        return False
    if after is not None and after["clip"]:
        return True
    before = _before(word)
    return any(form(before) for form in (_SUBJECT.search, _LITTLE.fullmatch, _HAN.search))


def _before(word: re.Match[str]) -> str:
    return word.string[max(0, word.start() - _REACH) : word.start()]


def _other(label: Label) -> Label:
    return Label.GENERATED if label is Label.REAL else Label.REAL
