"""Parser of answers of the protocol `preference`."""

# ruff: noqa: RUF001  words of other languages

import re
from collections.abc import Iterator
from itertools import pairwise

from unreel.core.judgement import Label
from unreel.core.verdict import Position, PreferenceVerdict, Unparsed, UnparsedReason
from unreel.protocols.answer_text import (
    SHORT,
    choose_first_parsed,
    find_tag_contents,
    is_first_impression_clause,
    is_hypothetical_clause,
    is_refusal_or_error,
    strip_markup,
    strip_thinking,
)
from unreel.protocols.claim_words import DOUBTS, QUALIFIES
from unreel.protocols.field_parser import get_field_kind, parse_answer_fields, parse_markdown_tables
from unreel.protocols.label_claim_parser import is_generated_field_name, parse_claimed_label
from unreel.protocols.preference.prompts import TAGGED_PROMPTS
from unreel.protocols.protocol import AnswerContext

_NOT_OF_CLIPS = r"(?!\s(?:frames?|half|few|glance|impression|thing|time|place|sight|look|thought|hand|later|mark|seconds?|of\sall|guess|instinct|\d{1,9})\b)"
_FIRST = (
    r"(?<!at\s)(?:first|1st|former|premi(?:er|ère)|primer[oa]?|primeir[oa]|erste[nrsm]?|prim[oa]|перв\w{2,3}|ال[أا]ول[ىي]?)(?![a-z])"
    + _NOT_OF_CLIPS
)
_SECOND = (
    r"(?<!\ba\s)(?<!per\s)(?<!one\s)(?<!on\s)(?:second[aeo]?|2nd|latter|deuxième|segund[oa]|zweite[nrsm]?|втор\w{2,3}|الثاني\w?)(?![a-z])"
    + _NOT_OF_CLIPS
)
_FIRST_GLYPHS = r"第一[个個段]?|1番目|1つ目|1本目|一つ目|前者|最初の(?=動画|映像)|첫\s?번째|1번(?=\s?(?:영상|비디오|이|가|은))"
_SECOND_GLYPHS = (
    r"第二[个個段]?|2番目|2つ目|2本目|二つ目|后者|後者|두\s?번째|2번(?=\s?(?:영상|비디오|이|가|은))"
)
_CLIP = r"(?:clip|vid[eé]o|vídeo|recording|footage|option|number|видео|ролик|(?:ال)?فيديو|视频|視頻|影片|片段|動画|영상|비디오)"
_POSITIONS = {
    "1": Position.FIRST,
    "first": Position.FIRST,
    "1st": Position.FIRST,
    "2nd": Position.SECOND,
    "2": Position.SECOND,
    "second": Position.SECOND,
}
_PLAIN = re.compile(r"[\"']?(?P<said>[12])[\"']?\.?")
# Examples: (1), Answer: 1, Video 1, the first video, The first video is real.
_LOOSE = re.compile(
    r"[#\"'*(\[\s]{0,5}(?:answer\s{0,3}(?::|=|is)[\"'*\s]{0,5})?"
    r"(?:(?:the\s{1,3})?(?:(?:video|clip|option)\s{0,3}#?)?(?P<said>1st|2nd|1|2|first|second)(?:\s{1,3}(?:video|clip|one))?)"
    r"(?:\s{1,3}(?:is|looks|appears|seems)(?:\s{1,3}(?:the|to\s{1,3}be))?\s{1,3}real(?:\s{1,3}(?:video|clip|one))?)?"
    r"[\"'*)\].!\s]{0,5}",
    re.IGNORECASE | re.ASCII,
)
# "1. Its motion ..." and "1: ..." begin with the answer; "2 errors" does not.
_LEADING = re.compile(
    r"[\"'*(\[]{0,5}(?P<said>[12])[\"'*)\]]{0,5}(?:[.,:;]\s|\s{0,3}\n|\s[-\u2013\u2014]\s)"
)
# "clip one", "video 2", "the latter", "le premier clip", "the other one"; a digit only before a verb.
_NAMED = re.compile(
    rf"(?<![A-Za-z0-9_\u00c0-\u04ff])(?:{_CLIP}\s{{0,3}}(?:number\s|no\.\s?|#)?(?:(?P<first>1|one|一|(?-i:A)|{_FIRST})|(?P<second>2|two|二|(?-i:B)|{_SECOND}))(?![A-Za-z0-9_])"
    rf"|(?:(?P<first_word>{_FIRST})|(?P<second_word>{_SECOND}))(?:\s(?:{_CLIP}|one)(?!\w))?"
    rf"|(?:the|das|die|l['\u2019]|el|la|o|a)\s?(?P<other>other|andere|autre|otr[oa]|altr[oa]|outr[oa])(?:\s(?:{_CLIP}|one)(?!\w))?"
    r"|(?P<digit>[12])(?=\s(?:is|was|looks|appears|seems|ist|es|est|è)\s|\sn?or\s[12]\b))"
    rf"|(?:{_CLIP})?(?:(?P<first_glyphs>{_FIRST_GLYPHS})|(?P<second_glyphs>{_SECOND_GLYPHS}))(?:の)?\s?(?:{_CLIP})?",
    re.IGNORECASE,
)
_PICKS = re.compile(
    r"(?:\b(?:it(?:\sis|['\u2019]s)|has\sto\sbe|must\sbe|definitely|probably|clearly|likely|certainly|obviously|choose|pick|go(?:ing)?\swith|select|opt\sfor|vote\sfor|bet\son|say|answer(?:\sis)?|choice(?:\sis)?|pick\sis|answer\smust\sbe|wähle|elijo|choisis|scelgo|escolho|выбираю|أختار)"
    r"|我选择?|选择?|答案是|選び?|선택)\W{0,4}(?:it\sis\s|it['\u2019]s\s)?(?:the\s|das\s|die\s|el\s|la\s|le\s|il\s|o\s)?\W{0,3}$",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    r"(?:\b(?:so|therefore|hence|thus|answer|choose|pick|choice|verdict|go(?:ing)?\swith|settl(?:e|ing)\son|stick\swith)\b|答案|所以|因此)[^.\n\w]{0,5}(?:is\s|it\sis\s|是|为)?[\"'*]{0,3}(?P<said>[12])[\"'*.!。\s]{0,5}$",
    re.IGNORECASE,
)
_THAN = r"\b(?:\sthan\b[^.;\n]{0,60})?"
_MORE_REAL = re.compile(
    rf"\b(?:(?:more|most)\s(?:realistic|natural|authentic|genuine|believable|plausible|lifelike|organic)"
    rf"|less\s(?:fake|artificial|synthetic|unnatural|suspicious)){_THAN}|更(?:真实|自然)",
    re.IGNORECASE,
)
_LESS_REAL = re.compile(
    rf"\b(?:(?:less|least)\s(?:realistic|natural|authentic|genuine|believable|plausible|lifelike|real)"
    rf"|more\s(?:artificial|synthetic|unnatural|suspicious)){_THAN}",
    re.IGNORECASE,
)
_SAME_FOR_BOTH = re.compile(
    r"\b(?:both|n?either|nor|too|also|as\swell|so\sis|as\s(?:is|was)|no\s(?:less|more)\s\w+\sthan|as\s\w+\sas"
    r"|beide|auch|ambos|ambas|también|tampoco|les\sdeux|aussi|non\splus|entramb[ie]|anche|neanche|também|оба|тоже)\b"
    r"|两个都|都是|両方|どちらも|둘\s?다",
    re.IGNORECASE,
)
"""Words that say the same about both clips, so that a claim about one of them is not a choice."""
_PARENTHESIS = re.compile(r"\s{0,3}\([^()]{0,60}\)\W{0,3}$")
_AND = re.compile(
    r"\W{0,3}(?:and|n?or|und|noch|oder|y|et|e|n[ieé]|nem|ou|и|ни|или|和|と|와|&)?\W{0,3}(?:the|la|le|el|das|die|o|a|il)?\W{0,3}",
    re.IGNORECASE,
)
_SEPARATOR = re.compile(r"[\s*_]{0,5}(?::|\s[-\u2013\u2014]\s|\u2192)[\s*_]{0,5}")
_ENDS = re.compile(r"\s{0,3}(?:$|[.,;:!()\u2013\u2014-]|because\b|since\b|as\b)")
_SENTENCE = re.compile(r"(?:\.(?=[0-9])|[^.!?;。\n])+[.!?;。]?")
_BREAK = re.compile(
    r"[,()]|\s[-\u2013\u2014]\s|\b(?:but|while|whereas|because|and|aber|während|pero|mais|ma|mas|а|но)\b",
    re.IGNORECASE,
)
_OTHER = {Position.FIRST: Position.SECOND, Position.SECOND: Position.FIRST}
_READ = 10_000
_EITHER = re.compile(r"(?<![\w.])[12](?![\w.]?[0-9])(?!\w)")


def parse_preference_answer(text: str, context: AnswerContext) -> PreferenceVerdict:
    """Parse which clip an answer calls real: 1 is the first clip shown, 2 the second.

    `strict` accepts only the digit, besides thoughts; if the prompt asks for a tag, in the last
    `<answer>`. A 0, which the printed prompts also ask for, names neither clip. `lenient` also
    accepts an `<answer>` that was not asked for, a field named answer, "Video 1", "the first video
    is real", a digit before an explanation that does not contain the other digit, and claims in
    prose. A refusal or an error message is no answer.
    """
    return PreferenceVerdict(real=choose_first_parsed(_iter_parsed_positions(text, context)))


def _iter_parsed_positions(text: str, context: AnswerContext) -> Iterator[Position | Unparsed]:
    body = strip_thinking(text).strip()
    requested_pieces = (
        find_tag_contents(body, "answer", "strict") if context.prompt in TAGGED_PROMPTS else [body]
    )
    yield _parse_short_position(requested_pieces[-1] if requested_pieces else "", _PLAIN)
    if context.mode == "lenient" and not is_refusal_or_error(body):
        plain = strip_markup(body).strip()
        if pieces := find_tag_contents(plain, "answer", "lenient"):
            yield _parse_loose_position(pieces[-1])
            return
        yield _parse_short_position(plain, _LOOSE)
        positions: set[Position] = set()
        named = []
        for field in parse_answer_fields(plain):
            position = _parse_loose_position(field.value)
            if field.kind in {"label", "real"} and isinstance(position, Position):
                positions.add(position)
            elif (
                field.kind is None
                and isinstance(position, Position)
                and is_generated_field_name(field.name)
            ):
                positions.add(_OTHER[position])
            elif field.kind is None:
                named.append(f"{field.name.replace('_', ' ')} is {field.value}")
        if not positions and named:
            stated = _parse_prose_position("\n".join(named)[:_READ])
        elif len(positions) == 1:
            stated = positions.pop()
        else:
            stated = Unparsed.of(
                UnparsedReason.AMBIGUOUS if positions else UnparsedReason.MISSING, plain
            )
        yield stated
        if isinstance(stated, Unparsed) and stated.reason is UnparsedReason.MISSING:
            yield _parse_leading_position(plain)
            yield _parse_prose_position(f"{plain[:_READ]}\n{_format_rows_as_prose(plain)}")


def _parse_short_position(piece: str, pattern: re.Pattern[str]) -> Position | Unparsed:
    match = pattern.fullmatch(piece) if len(piece) <= SHORT else None
    if match:
        return _POSITIONS[match["said"].lower()]
    return Unparsed.of(UnparsedReason.MALFORMED if piece else UnparsedReason.MISSING, piece)


def _parse_loose_position(piece: str) -> Position | Unparsed:
    bare = _PARENTHESIS.sub("", piece) if len(piece) <= SHORT else piece
    position = _parse_short_position(bare, _LOOSE)
    in_prose = _parse_prose_position(piece[:_READ])
    if isinstance(position, Position) and in_prose is _OTHER[position]:
        return Unparsed.of(UnparsedReason.AMBIGUOUS, piece)
    return choose_first_parsed((position, in_prose))


def _format_rows_as_prose(plain: str) -> str:
    """Convert a Markdown table about the two clips to prose; the clips may be its rows or its columns."""
    rows = parse_markdown_tables(plain[:_READ])
    if not rows:
        return ""
    heads = rows[0]
    sentences = [
        f"video {row[0]} is {cell}" if row[0] in {"1", "2"} else f"{row[0]} is {cell}"
        for row in rows[1:]
        for cell in row[1:]
        if row[0]
    ]
    sentences += [
        f"{head} is {cell}"
        for row in rows[1:]
        if row and get_field_kind(row[0]) in {"label", "real"}
        for head, cell in zip(heads[1:], row[1:], strict=False)
    ]
    return "\n".join(sentences)


def _parse_leading_position(body: str) -> Position | Unparsed:
    lines = [line.strip() for line in body[:_READ].splitlines() if line.strip()]
    alone = {
        position
        for line in (lines[:1] + lines[-1:])
        if isinstance(position := _parse_short_position(line, _LOOSE), Position)
    }
    against = set(_iter_claimed_positions(body[:_READ])) - alone
    if len(alone) == 1 and not against:
        return alone.pop()
    leading = _LEADING.match(body)
    if leading is None:
        return Unparsed.of(UnparsedReason.AMBIGUOUS if alone else UnparsedReason.MISSING, body)
    if {digit[0] for digit in _EITHER.finditer(body)} != {leading["said"]}:
        return Unparsed.of(UnparsedReason.AMBIGUOUS, body)
    return _POSITIONS[leading["said"]]


def _parse_prose_position(body: str) -> Position | Unparsed:
    """Return the clip that a prose answer calls real: by its last words, else if all claims agree."""
    real = set(_iter_claimed_positions(body))
    if closing := _CLOSING.search(body.rstrip()[-SHORT:]):
        real = {_POSITIONS[closing["said"]]}
    if len(real) == 1 and not _SAME_FOR_BOTH.search(body):
        return real.pop()
    return Unparsed.of(UnparsedReason.AMBIGUOUS if real else UnparsedReason.MISSING, body)


def _iter_claimed_positions(body: str) -> Iterator[Position]:
    last: Position | None = None
    for sentence in _SENTENCE.findall(body):
        is_qualified = any(map(QUALIFIES.match, re.split(r"[,;]", sentence)[1:]))
        if is_qualified or is_hypothetical_clause(sentence):
            continue
        for piece, name in _iter_named_pieces(sentence, list(_NAMED.finditer(sentence))):
            position = _find_named_position(name, last)
            if position is None:
                continue
            last = position
            claim = _find_piece_claim(piece)
            if claim is not None:
                yield position if claim is Label.REAL else _OTHER[position]


def _iter_named_pieces(
    sentence: str, named: list[re.Match[str]]
) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield clip names with their parts of a sentence; names joined by `and` or `nor` have none."""
    start = 0
    joined = {
        after.start()
        for name_before, after in pairwise(named)
        if _AND.fullmatch(sentence, name_before.end(), after.start())
    }
    for name, end in zip(
        named, [*(after.start() for after in named[1:]), len(sentence)], strict=False
    ):
        breaks = [match.start() for match in _BREAK.finditer(sentence, name.end(), end)]
        cut = breaks[-1] if breaks and end < len(sentence) else end
        if name.start() not in joined and end not in joined:
            before, after = sentence[start : name.start()], sentence[name.end() : cut]
            yield (
                f"{before}\0{_SEPARATOR.sub(' is ', after, count=1) if _SEPARATOR.match(after) else after}",
                name,
            )
        start = cut


def _find_named_position(name: re.Match[str], last: Position | None) -> Position | None:
    if name["other"]:
        return _OTHER[last] if last else None
    is_first = name["first"] or name["first_word"] or name["first_glyphs"] or name["digit"] == "1"
    return Position.FIRST if is_first else Position.SECOND


def _find_piece_claim(piece: str) -> Label | None:
    before, _, after = piece.partition("\0")
    sentence = _LESS_REAL.sub("fake", _MORE_REAL.sub("real", f"{before}this clip {after}"))
    claim = parse_claimed_label(sentence)
    if isinstance(claim, Label):
        return claim
    is_picked = _PICKS.search(before) and _ENDS.match(after) and not DOUBTS.search(before)
    return Label.REAL if is_picked and not is_first_impression_clause(before) else None
