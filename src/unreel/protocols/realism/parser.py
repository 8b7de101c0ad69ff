"""Parser of answers of the protocol `realism`, and the answers that a reviewer is trained to give."""

# ruff: noqa: RUF001  words of other languages

import re
from collections.abc import Iterator
from typing import Literal

from unreel.core.errors import InvalidValueError
from unreel.core.judgement import ErrorFamily, Rating
from unreel.core.verdict import RealismVerdict, Unparsed, UnparsedReason
from unreel.protocols.answer_text import (
    SHORT,
    choose_first_parsed,
    find_tag_contents,
    is_contradicting_clause,
    is_first_impression_clause,
    is_refusal_or_error,
    split_clauses,
    strip_markup,
    strip_thinking,
)
from unreel.protocols.box_space import BoxSpace
from unreel.protocols.claim_words import replace_number_words
from unreel.protocols.field_parser import get_field_values, parse_answer_fields
from unreel.protocols.label_claim_parser import is_answer_corrected
from unreel.protocols.protocol import (
    AnswerContext,
    Mode,
    collapse_whitespace,
    require_training_answer_parses_back,
)
from unreel.protocols.realism.prompts import (
    FAMILY_PROMPTS,
    FREE_PROMPTS,
    PROMPTS,
    TERMS,
    VERBAL_PROMPTS,
)

Reason = Literal["problem", "adherence"]

_INTEGERS = {str(score): score for score in range(1, 6)}
_TERMS = {term: score for score, term in enumerate(TERMS, start=1)}
_TERM = "|".join(TERMS)
_SAME = {
    word: score
    for score, words in enumerate(
        (
            "很差 极差 糟糕 悪い 나쁨 schlecht malo mauvais ruim плохо سيئ",
            "较差 較差 やや悪い mangelhaft médiocre mediocre scarso ضعيف",
            "一般 普通 正常 보통 normale нормально mittel moyen regular عادي",
            "良好 良い 좋음 gut bueno buena bon bonne buono bom хорошо جيد",
            "优秀 優秀 极好 非常好 優れている 우수 훌륭함 ausgezeichnet hervorragend exzellent excelente eccellente отлично ممتاز",
        ),
        start=1,
    )
    for word in words.split()
} | {term.lower(): score for term, score in _TERMS.items()}
_STARS = re.compile(r"(?P<full>[\u2605\u2b50]\ufe0f?){1,5}\u2606{0,4}")
_UNIT = r"(?:\s?(?:分|点|點|星|점|stars?|points?|punkten?|puntos?|punti|pontos?|étoiles?|балл\w{0,2}|درجات?|نقاط))"
_SCALE = re.compile(
    rf"(?:/|\b(?:out\sof|of|von|de|sur|sobre|su|em|из|من)\b)\s{{0,3}}5{_UNIT}?(?!\w|\.[0-9])|满分\s?5\s?分|5\s?点満点(?:中|で)?|5점\s?만점에?"
    r"|\b(?:on|using|auf)\s(?:a|the|your|einer)?\s?(?:scale|skala)\s(?:of|from|von)\s1\s?(?:-|\u2013|to|bis)\s?5|[(\[]?\b1\s?[-\u2013]\s?5\b[)\]]?(?=\s?scale|[)\]])",
    re.IGNORECASE,
)
_OTHER_SCALE = re.compile(
    r"(?:/|\b(?:out\sof|von|sur|su|из|من)\b)\s{0,3}(?:[0-46-9]\b|[0-9]{2,4})|%|percent|点満点|점\s?만점",
    re.IGNORECASE,
)
# "3", "3.0", "3\u5206", "Normal"; the 5 of "3/5" and "out of 5" is the scale.
_SCORE = re.compile(
    rf"(?<![A-Za-z0-9_.,-])(?:(?P<digit>[1-5])(?:[.,]0{{1,3}})?(?![0-9A-Za-z_]|[.,][0-9]|\s?[-\u2013~/+:]\s?[0-9]){_UNIT}?|(?P<term>{_TERM})\b)",
    re.IGNORECASE,
)
_BARE = re.compile(
    r"[\W_]{0,20}(?:\b(?:final|score|rating|answer|overall|is|the|a|my|i|would|rate|give|it|this|video|clip|say|as|at|about)\b[\W_]{0,5}){0,8}[\W_]{0,10}",
    re.IGNORECASE,
)
_GIVES = re.compile(
    r"(?:\b(?:score[sd]?|rating|rat(?:e[sd]?|ing)|giv(?:e|es|en|ing)|grade[sd]?|mark|award|assign(?:s|ed)?|deserves?|earns?|gets?|merits?|worth|go(?:ing)?\s(?:with|for)|settl(?:e|ed|ing)\s(?:on|for)|level|category|class"
    r"|land(?:s|ing)?\s(?:on|at)|opt\sfor|choose|pick|call\sit|makes?\s(?:it|this)|comes?\s(?:to|out\s(?:at|as))|put\s(?:it|this)\sat|stick\swith|so|hence|therefore|thus|answer|verdict|final(?:ly)?"
    r"|it(?:\sis|['\u2019]s)|bewert\w{0,3}|vergebe|gebe|wertung|also|daher|note|nota|puntuación|doy|califico|otorgo|donne|attribue|mets|donc|assegno|quindi|dou|ставлю|оцениваю|оценка)\b"
    r"|评分|得分|打分|打|给|評価|点数|スコア|점수|평점|平分|评为|أعطي|التقييم|الدرجة)",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"[\s*\"'_]{0,5}(?:(?:it\sis|overall|here|in\stotal|altogether|then|for|to|due|given|as|on|at|and|from)\b.{0,200})?[\W_]{0,5}",
    re.IGNORECASE | re.DOTALL,
)
_ANY_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?")
_NOT_BUT = re.compile(r"\bnot\s(?:an?\s)?\w{1,10}\sbut\b", re.IGNORECASE)
_DENIED = re.compile(
    r"\b(?:not|no|neither|nor|between|never|or|to|than|nicht|kein\w{0,2}|zwischen|oder|entre|ni|tra|о|между|или|не)\b|n['\u2019]t\b|[不没或到至]|~",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"\b(?:would(?!\s(?:\w{1,10}\s)?(?:be|rate|give|score|say|go|call|put|assign|settle|award|grade))|could|might|may|if|unless|almost|nearly|below|above|under|over|least|most|short\sof|requires?|reserved?|means|stands"
    r"|instead\sof|rather\sthan|more|less|better|worse|higher|lower|cannot|can['\u2019]t|either)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[-+]?[0-9]{1,12}")
_SENTENCE_END = re.compile(r"[.!。]\s|[;。\n]|(?:,|\s[-\u2013\u2014])\s(?=not\b)")
_OF_FIVE = re.compile(
    r"(?:^|(?<=[.!\n]\s)|(?<=\n))[\s*_\"']{0,5}(?P<digit>[1-5])(?:\.0)?[*_]{0,2}\s?(?:/|out\sof|von|sur|su|из)\s?5(?=\s{0,3}(?:$|[.,:;!\n*\u2013\u2014-]|because|since|due|for|stars|points))",
    re.IGNORECASE,
)
_PARENTHESIS = re.compile(r"\([^()0-9]{0,30}\)")
# "3 (Normal)." opens an answer; "5 (Excellent) would need" and a legend of several do not.
_LEADING = re.compile(
    rf"(?P<digit>[1-5])\s?[-\u2013:(]?\s?(?P<term>{_TERM})\b\)?(?P<ends>\s{{0,3}}(?:$|[.:;,\n\u2013\u2014-]))?",
    re.IGNORECASE,
)
# "3\uc810\uc744 \uc8fc\uaca0\uc2b5\ub2c8\ub2e4", "3\u70b9\u3067\u3059": the unit marks the number as a score.
_WITH_UNIT = re.compile(
    r"(?<![0-9.])(?P<digit>[1-5])\s?(?:점(?=을|이|으로|\W|$)|点(?=です|を|と|だ|に|\W|$)|分(?![钟鐘之别析为成]))"
)
_READ = 10_000
"""Number of characters that are parsed at the end of a longer text; a leading score is searched at its start."""
_NEAR = 40

_HEADS = {
    "strict": re.compile(r"(?P<problem>Problem Description:)|(?P<adherence>Standard Adherence:)"),
    "lenient": re.compile(
        r"(?:#{1,4}\s)?[*_]{0,3}(?:(?P<problem>problem\s{1,3}description)|(?P<adherence>standard\s{1,3}adherence))"
        r"[*_\s]{0,3}:[*_]{0,3}",
        re.IGNORECASE | re.ASCII,
    ),
}
Family = ErrorFamily | Literal["none"]
_KNOWN: dict[str, Family] = {"none": "none", **{family.value: family for family in ErrorFamily}}
_LETTERS = re.compile(r"[a-z]+")
_FAMILY = re.compile(
    r"<\s{0,3}family\s{0,3}>[^<]{0,200}(?:<\s{0,3}/\s{0,3}family\s{0,3}>)?",
    re.IGNORECASE | re.ASCII,
)
_REASONS_END = re.compile(r"</think>|<answer>", re.IGNORECASE | re.ASCII)


def parse_realism_answer(text: str, context: AnswerContext) -> RealismVerdict:
    """Parse the realism score in the last `<answer>`, and the two reasons after their headings.

    `strict` accepts an integer from 1 to 5, or one of the five terms if the prompt variant is
    verbal. `lenient` also accepts the two forms mixed, an unclosed tag, and a score in fields or in
    prose. A number outside 1 to 5 is out of range. A fraction is malformed; it is never rounded. If
    the prompt asks for thoughts without headings, the whole thought is taken as the problem.
    """
    asks = context.prompt in FAMILY_PROMPTS
    return RealismVerdict(
        score=choose_first_parsed(
            _iter_parsed_scores(_FAMILY.sub("", text) if asks else text, context)
        ),
        problem=choose_first_parsed(_iter_parsed_reasons(text, "problem", context)),
        adherence=choose_first_parsed(_iter_parsed_reasons(text, "adherence", context)),
        family=choose_first_parsed(_iter_parsed_error_families(text, context.mode))
        if asks
        else None,
    )


def _iter_parsed_error_families(text: str, mode: Mode) -> Iterator[Family | Unparsed]:
    """Yield the error family in the last `<family>` tag of an answer: parsed strictly, then leniently.

    `lenient` also accepts other letter case, spaces instead of hyphens, and a missing plural.
    """
    body = strip_thinking(text).strip()
    pieces = find_tag_contents(body, "family", "strict")
    yield _parse_error_family(pieces[-1]) if pieces else Unparsed(UnparsedReason.MISSING)
    if mode == "lenient" and (pieces := find_tag_contents(strip_markup(body), "family", "lenient")):
        name = "-".join(_LETTERS.findall(pieces[-1][:SHORT].lower()))
        yield _parse_error_family(name if name in _KNOWN else f"{name}s")


def _parse_error_family(piece: str) -> Family | Unparsed:
    return _KNOWN.get(piece, Unparsed.of(UnparsedReason.MALFORMED, piece))


def _iter_parsed_scores(text: str, context: AnswerContext) -> Iterator[int | Unparsed]:
    scores = _TERMS if context.prompt in VERBAL_PROMPTS else _INTEGERS
    body = strip_thinking(text).strip()
    if is_answer_corrected(body):
        yield Unparsed.of(UnparsedReason.AMBIGUOUS, body)
        return
    pieces = find_tag_contents(body, "answer", "strict")
    yield scores.get(pieces[-1] if pieces else "", _build_unparsed_score(pieces))
    if context.mode == "lenient":
        plain = strip_markup(body).strip()
        if pieces := find_tag_contents(plain, "answer", "lenient"):
            yield _parse_loose_score(pieces[-1])
        elif not is_refusal_or_error(plain):
            yield from _iter_untagged_scores(plain)


def _iter_untagged_scores(plain: str) -> Iterator[int | Unparsed]:
    stated = [
        _parse_loose_score(_SENTENCE_END.split(value, maxsplit=1)[0])
        for value in get_field_values(parse_answer_fields(plain), "score")
    ]
    stated = stated or [
        _parse_loose_score(value) for value in get_field_values(parse_answer_fields(plain), "label")
    ]
    scores = {score for score in stated if isinstance(score, int)}
    if len(scores) > 1:
        yield Unparsed.of(UnparsedReason.AMBIGUOUS, plain)
        return
    yield from scores
    lines = [line.strip() for line in plain[-_READ:].splitlines() if line.strip()]
    for line in (lines[0], lines[-1]) if lines else ():
        if len(line) <= SHORT and _BARE.fullmatch(
            _PARENTHESIS.sub("", _SCORE.sub("", _SCALE.sub("", replace_number_words(line))))
        ):
            yield _parse_loose_score(line)
    yield _parse_leading_score(plain[:_READ])
    scaled = {int(match["digit"]) for match in _OF_FIVE.finditer(plain[-_READ:])}
    if len(scaled) == 1:
        yield from scaled
    yield _parse_prose_score(plain[-_READ:])


def _parse_leading_score(plain: str) -> int | Unparsed:
    pairs = {
        (match["digit"], _TERMS[match["term"].capitalize()]) for match in _LEADING.finditer(plain)
    }
    first = _LEADING.match(plain.lstrip("*_ \"'"))
    if first and first["ends"] is not None and pairs == {(first["digit"], int(first["digit"]))}:
        return int(first["digit"])
    return Unparsed(UnparsedReason.MISSING)


def _parse_prose_score(text: str) -> int | Unparsed:
    """Return the score of a prose answer's clauses; of several, the last one if it marks a contradiction."""
    chosen: int | None = None
    divided = False
    for clause in split_clauses(_NOT_BUT.sub(" ", _SCALE.sub(" ", replace_number_words(text)))):
        score = _find_clause_score(clause.text)
        if score is None or clause.asks:
            continue
        divided = chosen not in {None, score} and not is_contradicting_clause(clause.text)
        chosen = score
    if chosen is None or divided:
        return Unparsed.of(UnparsedReason.AMBIGUOUS if divided else UnparsedReason.MISSING, text)
    return chosen


def _find_clause_score(clause: str) -> int | None:
    units = list(_WITH_UNIT.finditer(clause[:SHORT]))
    if len(units) == 1 and len(_ANY_NUMBER.findall(clause)) == 1:
        open_ended = _DENIED.search(clause) or is_first_impression_clause(clause)
        return None if open_ended else int(units[0]["digit"])
    verb = _GIVES.search(clause[:SHORT])
    scores = list(_SCORE.finditer(clause, verb.end(), SHORT)) if verb else []
    if verb is None or len(scores) != 1 or scores[0].start() - verb.end() > _NEAR:
        return None
    before = clause[: scores[0].start()]
    if _DENIED.search(_NOT_BUT.sub("", before)) or _SUPPOSED.search(before):
        return None
    tail = clause[scores[0].end() : scores[0].end() + SHORT]
    if (scores[0]["term"] or "A").islower():
        return None
    if not _TAIL.fullmatch(tail) or is_first_impression_clause(clause):
        return None
    return _get_score_value(scores[0])


def _build_unparsed_score(pieces: list[str]) -> Unparsed:
    if not pieces:
        return Unparsed(UnparsedReason.MISSING)
    out_of_range = _NUMBER.fullmatch(pieces[-1]) and pieces[-1] not in _INTEGERS
    reason = UnparsedReason.OUT_OF_RANGE if out_of_range else UnparsedReason.MALFORMED
    return Unparsed.of(reason, pieces[-1])


def _parse_loose_score(piece: str) -> int | Unparsed:
    plain = replace_number_words(piece.strip())
    if stars := _STARS.fullmatch(plain):
        return sum(glyph in "\u2605\u2b50" for glyph in stars[0])
    if (score := _SAME.get(plain.strip(" .!\"'*").lower())) is not None:
        return score
    bare = _SCALE.sub("", _NOT_BUT.sub("", plain))
    if len(piece) > SHORT or _OTHER_SCALE.search(bare) or _DENIED.search(bare):
        return _build_unparsed_score([piece])
    matches = list(_SCORE.finditer(bare))
    scores = {_get_score_value(score) for score in matches}
    n_numbers = len(_ANY_NUMBER.findall(bare))
    if len(scores) > 1 or n_numbers > sum(score["digit"] is not None for score in matches):
        if len(scores) > 1:
            return Unparsed.of(UnparsedReason.AMBIGUOUS, piece)
        return _build_unparsed_score([piece])
    return scores.pop() if scores else _build_unparsed_score([piece])


def _get_score_value(score: re.Match[str]) -> int:
    return int(score["digit"]) if score["digit"] else _TERMS[score["term"].capitalize()]


def _iter_parsed_reasons(
    text: str, reason: Reason, context: AnswerContext
) -> Iterator[str | Unparsed]:
    yield _parse_reason(text, reason, "strict")
    if context.mode == "lenient":
        yield _parse_reason(text, reason, "lenient")
    ends = _REASONS_END.search(text)
    if reason == "problem" and context.prompt in FREE_PROMPTS and ends:
        thought = text[: ends.start()].strip().removeprefix("<think>").strip()
        yield thought or Unparsed(UnparsedReason.MISSING)


def _parse_reason(text: str, reason: Reason, mode: Mode) -> str | Unparsed:
    """Return the text of a reason, from its last heading to the next heading or the thought's end."""
    start, end = None, len(text)
    for head in _HEADS[mode].finditer(text):
        if head[reason]:
            start, end = head.end(), len(text)
        elif start is not None and end == len(text):
            end = head.start()
    if start is None:
        return Unparsed(UnparsedReason.MISSING)
    thought_ends = _REASONS_END.search(text, start, end)
    content = text[start : thought_ends.start() if thought_ends else end].strip()
    return content or Unparsed(UnparsedReason.MISSING)


_FLAWLESS = len(TERMS)


def format_realism_training_answer(
    true_rating: Rating, prompt: str, _space: BoxSpace | None
) -> str:
    """Return the training answer for a realism rating: the reasons if requested, then the score.

    If the prompt asks for thoughts without headings, the thought is the problem, because the parser
    reads such answers this way.
    """
    score = TERMS[true_rating.score - 1] if prompt in VERBAL_PROMPTS else str(true_rating.score)
    answer = f"<answer>{score}</answer>"
    if not PROMPTS[prompt].asks_to_think:
        return answer
    problem, adherence = (
        collapse_whitespace(true_rating.problem),
        collapse_whitespace(true_rating.adherence),
    )
    if not problem or (prompt not in FREE_PROMPTS and not adherence):
        raise InvalidValueError(
            "no reason with the score. Train a prompt that asks for the score only: score-only"
        )
    headed = f"Problem Description: {problem}\nStandard Adherence: {adherence}"
    thought = problem if prompt in FREE_PROMPTS else headed
    family = _get_error_family(true_rating) if prompt in FAMILY_PROMPTS else None
    named = "" if family is None else f"<family>{family}</family>\n"
    text = f"<think>{thought}</think>\n{named}{answer}"
    verdict = parse_realism_answer(text, AnswerContext(prompt=prompt))
    adherence_read = None if isinstance(verdict.adherence, Unparsed) else verdict.adherence
    require_training_answer_parses_back(
        parsed=(verdict.score, verdict.problem, adherence_read, verdict.family),
        meant=(true_rating.score, problem, None if prompt in FREE_PROMPTS else adherence, family),
    )
    return text


def _get_error_family(true_rating: Rating) -> str:
    """Return the error family, or `none` for a best score; raise `InvalidValueError` without both."""
    if true_rating.family is not None:
        return true_rating.family.value
    if true_rating.score == _FLAWLESS:
        return "none"
    raise InvalidValueError(
        "no family of errors with the score. Train a prompt that does not ask for it: paper"
    )
