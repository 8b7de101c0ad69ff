"""Text of a model's answer: parsing into a verdict, and its thoughts, markup, tags and clauses."""

# ruff: noqa: RUF001  words of other languages

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal, TypeVar

from unreel.core.verdict import Unparsed, UnparsedReason, Verdict
from unreel.protocols import claim_words
from unreel.protocols.box_space import parse_box_space
from unreel.protocols.protocol import AnswerContext, Mode, Protocol

_AND = (
    r"and\s(?=(?:it|its|this|that|these|the|i|we|my|so|thus|therefore|hence|looks?|appears?|seems?|is|feels|was|must|should|reads|comes|conclude|believe"
    r"|consider|judge|think|would|rate|call|overall|everything)\b)"
    r"|und\s(?=(?:wirkt|ist|sieht|scheint|das|es|die|dieses|der|ich|daher|deshalb|somit|halte)\b)"
    r"|[ye]\s(?=(?:parece|es|se|luce|resulta|el|la|este|esta|lo|por|creo|considero|sembra|appare|è|il|questo|risulta|penso|é|o|a|esse|aparenta|portanto)\b)"
    r"|et\s(?=(?:semble|paraît|est|c['\u2019]est|la|le|cette|ce|elle|il|je|donc)\b)"
    r"|и\s(?=(?:выглядит|является|это|видео|ролик|кажется|я|поэтому)\b)"
)
_CLAUSE_ENDS = re.compile(
    r"(?P<asks>[?\u061f])|(?P<stops>(?<![0-9])[.:](?=\s|$|['\"*)])|(?<=[0-9])\.(?=\s|$)|[\n;!。؛])|[,()،]|\s[-\u2013\u2014]\s|\u2014"
    r"|(?<=[すまただるくてでめのがら])、"
    r"|(?P<turns>(?=\b(?:but|yet|however|because|since|so|hence|thus|therefore|weil|denn|aber|sondern|daher|pero|porque|sino|mais|car|donc|ma|perché|quindi"
    rf"|mas|porém|но|поэтому|потому|بل|لكن|ولكن|لكنه)\b))|(?P<ands>\b(?:{_AND}))|(?=\b(?:although|though|while|whereas|despite)\b)",
    re.IGNORECASE,
)
_SUPPOSES = re.compile(
    r"\W{0,5}(?:(?:if|unless|suppose|assuming|wenn|falls|si|se|если)\s(?!(?:you|one|we)\s(?:look|watch|pause|zoom|examine|ask|check|study|compare|go)|i\s(?:had|have|must|were)|i(?:\sam|['\u2019]m)\s(?:(?:not|much|very|badly|gravely)\s){0,2}(?:mistaken|wrong)|ich\smich\snicht\sirre|je\sne\sme\strompe|no\sme\sequivoco|non\smi\ssbaglio|tuviera|du\s|man\s)|如果|若|إذا|もし|만약)",
    re.IGNORECASE,
)
_TURNS = re.compile(
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
    """One clause of a sentence in an answer, and how it is separated from the previous clause."""

    text: str
    asks: bool
    opens: Literal["sentence", "turn", "clause"]
    """Separator before the clause; an earlier negation continues only into a `clause`."""


def split_clauses(text: str) -> Iterator[TextClause]:
    """Split a text into clauses, and yield those that are not blank."""
    start = 0
    opens: Literal["sentence", "turn", "clause"] = "sentence"
    for end in _CLAUSE_ENDS.finditer(text):
        if has_text := bool(text[start : end.start()].strip()):
            yield TextClause(text[start : end.start()], asks=end["asks"] is not None, opens=opens)
            opens = "clause"
        if end["asks"] or end["stops"]:
            opens = "sentence"
        elif end["turns"] is not None or (end["ands"] and has_text):
            opens = "turn" if opens == "clause" else opens
        start = end.end()
    if text[start:].strip():
        yield TextClause(text[start:], asks=False, opens=opens)


def is_contradicting_clause(clause: str) -> bool:
    """Return whether a clause begins with a contradiction or conclusion, such as `yet` or `hence`."""
    return _TURNS.match(clause) is not None


def is_hypothetical_clause(clause: str) -> bool:
    """Return whether a clause begins with a word such as `if`, which makes its sentence hypothetical."""
    return _SUPPOSES.match(clause) is not None


def is_first_impression_clause(clause: str) -> bool:
    """Return whether a clause describes a first impression, which the answer may revise later."""
    return any(
        pattern.search(clause) for pattern in (claim_words.FIRST_THOUGHT, claim_words.FIRST_GLYPHS)
    )


def parse_answer_text(
    text: str,
    instrument: Protocol[Any, Any],
    *,
    prompt: str,
    mode: Mode,
    box_space: str | None,
    size: tuple[int, int],
) -> Verdict:
    """Parse the text of an answer into a verdict of the protocol `instrument`.

    `prompt` is the name of the prompt variant that was sent, and `size` the width and height of
    the clip's frames. Raise `InvalidValueError` if `box_space` is not a known coordinate space.
    """
    verdict: Verdict = instrument.parse(text, _build_answer_context(mode, prompt, box_space, size))
    return verdict


@lru_cache(maxsize=256)
def _build_answer_context(
    mode: Mode, prompt: str, box_space: str | None, size: tuple[int, int]
) -> AnswerContext:
    space = None
    if box_space is not None:
        width, height = size
        space = parse_box_space(box_space, width=width, height=height)
    return AnswerContext(mode=mode, prompt=prompt, space=space)


R = TypeVar("R")

SHORT = 200
"""Maximum number of characters of a piece that is parsed as one number, word or box."""

_UNDERSTOOD = (
    UnparsedReason.MISSING,
    UnparsedReason.MALFORMED,
    UnparsedReason.OUT_OF_RANGE,
    UnparsedReason.AMBIGUOUS,
)
_THOUGHT = re.compile(
    r"(?P<closes></think(?:ing)?>|\u25c1/think\u25b7|\[/think\]|<\|end_of_thought\|>)"
    r"|<think(?:ing)?>|\u25c1think\u25b7|\[think\]|<\|begin_of_thought\|>",
    re.IGNORECASE | re.ASCII,
)
# Special tokens of GLM, of Qwen and DeepSeek, of InternVL, LaTeX boxes, and code fences.
_WRAPPING = re.compile(
    r"<\|(?:begin_of_box|end_of_box|box_start|box_end|det|/det|ref|/ref)\|>|</?(?:box|ref|bbox)>"
    r"|\\boxed\{(?P<boxed>[^{}]{0,200})\}|```\w{0,10}",
    re.IGNORECASE | re.ASCII,
)
# A label in such a text only repeats the question. Phrases that also begin genuine answers, such as
# "I cannot see any fault" and "Unfortunately", are omitted.
_NO_ANSWER = re.compile(
    r"""[\W_]{0,10}(?:
      (?P<refusal>
        (?:i['\u2019]m|i\ am|we['\u2019]re|we\ are)\ (?:very\ |so\ |really\ )?sorry\b
      | lo\ siento\b | es\ tut\ mir\ leid | (?:je\ suis\ )?désolée?\b | mi\ dispiace\b | desculpe\b | sinto\ muito\b
      | извините\b | к\ сожалению,?\ я\ не\ могу | 抱歉 | 对不起 | 對不起 | 申し訳 | すみません | 죄송 | عذر[اًا] | آسف
      | sorry\b | as\ an?\ (?:ai|large)\b | (?:i|we)\ apologi[sz]e\b
      | (?:(?:i|we)\ (?:can['\u2019]?t|cannot|can\ not|could\ not|couldn['\u2019]t|am\ unable\ to|am\ not\ able\ to)
        | i['\u2019]m\ (?:unable|not\ able)\ to | unable\ to)\ (?:\w{1,20}\ )?
        (?:help|assist|assess|evaluate|analy[sz]e|answer|comply|provide|view|watch|rate|score|access|open
        |play|process|fulfil|(?P<undecided>determine|decide|tell|say|judge|verify|be\ (?:sure|certain)))
      | (?:i|we)\ (?:do\ not|don['\u2019]t)\ (?:\w{1,20}\ )?have\ (?:access|the\ ability)
      )
      | no\ (?:video|frames?)\ (?:was|were|is|are|has|have|could|provided|found|attached)
      | [\w.]{0,40}(?:error|exception)(?:\ (?:code|occurred|while|when|from)\b|["']?\s{0,3}[:\[({\d]|$)
      | traceback\b | bad\ request\b | rate\ limit | <!doctype | <html | \d{1,4}\ validation\ error
      | (?:http\S{0,8}\ )?[45]\d\d\ (?:bad|unauthori|forbidden|not\ found|too\ many|internal|service
        |gateway|client|server|error)
    )""",
    re.IGNORECASE | re.VERBOSE,
)


def strip_thinking(text: str) -> str:
    """Return an answer without the model's thoughts, for the thinking tags of all model families.

    A second opening tag closes the first, as in the example in Video Reality Test. A thought
    without an end contains no answer, unless the text ends with an `<answer>`.
    """
    tags = list(_THOUGHT.finditer(text))
    closing = [tag for tag in tags if tag["closes"]]
    if closing:
        body = text[closing[-1].end() :]
        reopened = _THOUGHT.search(body)
        return body[: reopened.start()] if reopened else body
    if len(tags) > 1:
        return text[tags[-1].end() :]
    if not tags:
        return text
    last = text.rfind("<answer>")
    if last >= 0 and text.rstrip().endswith("</answer>"):
        return text[last:]
    return text[: tags[0].start()]


def strip_markup(text: str) -> str:
    """Return the text of an answer without markup around it, with normalised characters and digits."""
    plain = unicodedata.normalize("NFKC", text)
    return _WRAPPING.sub(
        r"\g<boxed>", plain if plain.isascii() else plain.translate(_build_digit_table())
    )


@cache
def _build_digit_table() -> dict[int, str | None]:
    """Return a table that maps every script's digits to ASCII and drops optional Arabic vowel signs."""
    codes = (code for code in range(0x660, 0x1FC00) if chr(code).isdecimal())
    signs = dict.fromkeys((0x640, 0x200B, 0x2060, *range(0x64B, 0x653)), None)
    return {code: str(unicodedata.decimal(chr(code))) for code in codes} | signs


def is_refusal_or_error(text: str) -> bool:
    """Return whether an answer begins like a refusal or like a server's error message."""
    return _NO_ANSWER.match(text.lstrip()[:SHORT]) is not None


def is_refusal(text: str) -> bool:
    """Return whether an answer, without thoughts, begins with a refusal; indecision does not count."""
    match = _NO_ANSWER.match(strip_thinking(text).lstrip()[:SHORT])
    return match is not None and match["refusal"] is not None and match["undecided"] is None


def find_tag_contents(text: str, name: str, mode: Mode) -> list[str]:
    """Return the non-blank contents between `<name>` and `</name>`, stripped, in order.

    Of nested tags, only the innermost content counts. `lenient` also accepts other letter cases,
    spaces inside the tag, and an unclosed tag, whose content ends at the next tag or the end of the
    text.
    """
    pieces = (piece.strip() for piece in _iter_tagged_pieces(text, name, mode))
    return [piece for piece in pieces if piece]


def _iter_tagged_pieces(text: str, name: str, mode: Mode) -> Iterator[str]:
    opened: int | None = None
    for tag in _compile_tag_pattern(name, mode).finditer(text):
        if tag[1]:
            if opened is not None:
                yield text[opened : tag.start()]
            opened = None
            continue
        if opened is not None and mode == "lenient":
            yield text[opened : tag.start()]
        opened = tag.end()
    if opened is not None and mode == "lenient":
        end = text.find("<", opened)
        yield text[opened : len(text) if end < 0 else end]


@cache
def _compile_tag_pattern(name: str, mode: Mode) -> re.Pattern[str]:
    if mode == "strict":
        return re.compile(rf"<(/?){name}>")
    return re.compile(rf"<\s{{0,3}}(/?)\s{{0,3}}{name}\s{{0,3}}>", re.IGNORECASE | re.ASCII)


def choose_first_parsed(attempts: Iterable[R | Unparsed]) -> R | Unparsed:
    """Return the first parsed result, else the `Unparsed` one whose reason understood most."""
    best = Unparsed(UnparsedReason.MISSING)
    for result in attempts:
        if not isinstance(result, Unparsed):
            return result
        if _UNDERSTOOD.index(result.reason) > _UNDERSTOOD.index(best.reason):
            best = result
    return best
