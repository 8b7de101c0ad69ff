"""Parser of prose that claims a clip to be real or generated.

A text is split into sentences and these into clauses. A clause that asks, supposes, concedes or
doubts claims nothing. A negation inverts the claim, also from an earlier clause if the grammar
continues it. A later claim overrides an earlier one only if the text contradicts itself in
between ("yet", "actually", "hence"). The remaining claims must agree. The words are in
`claim_words.py`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from unreel.core.judgement import Label
from unreel.core.verdict import Unparsed, UnparsedReason
from unreel.protocols import claim_words
from unreel.protocols.answer_text import (
    build_unparsed_result,
    is_contradicting_clause,
    is_first_impression_clause,
    is_hypothetical_clause,
    split_clauses,
    strip_markup,
)
from unreel.protocols.field_parser import (
    AnswerField,
    find_first_json_object,
    get_field_values,
    parse_answer_fields,
)

_WORD: Final = re.compile(
    rf"(?<![{claim_words.LETTER}-])(?:(?P<real_phrase>{claim_words.REAL_PHRASE})|(?P<generated_phrase>{claim_words.GENERATED_PHRASE})"
    rf"|(?P<real>{claim_words.REAL})|(?P<generated>{claim_words.GENERATED}))(?![{claim_words.LETTER}-]|\s(?:time|world)\b)"
    rf"|(?P<real_glyphs>{claim_words.REAL_GLYPHS})|(?P<generated_glyphs>{claim_words.GENERATED_GLYPHS})",
    re.IGNORECASE,
)
_CAPITAL: Final = re.compile(r"REAL|FAKE")
_GLYPHS: Final = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")

_ARTICLE: Final = re.compile(r"\W{0,5}(?:(?:an?|any|most|many)\s)?\W{0,3}", re.IGNORECASE)
_ANY_SUCH: Final = re.compile(
    r"\s(?:would|usually|typically|often|tends?|normally|rarely|always|does|do|don['\u2019]t|should|can|shows?|has|have)\b",
    re.IGNORECASE,
)
"""Words after a label in a general statement, such as `A fake video usually shows`, which is no claim."""
_TOO: Final = re.compile(r"\btoo\s\w{1,15}\sto\sbe\W{0,3}$", re.IGNORECASE)
_CALLING: Final = re.compile(
    r"\W{0,5}(?:(?:to\s(?:call|label|brand|declare|describe)|calling|labell?ing|branding|declaring|describing)\b)",
    re.IGNORECASE,
)
_TO_CALL: Final = re.compile(
    r"(?P<ready>\b(?:have|has|had|want|going|need|forced|inclined|leans?|leaning|tend|prepared|ready|happy|confident|comfortable|safe|fair|right|correct|reasonable|enough|me|us|compelled|like|able|tempted)\s)?"
    r"to\s(?:call|label|brand|mark|declare|describe)\b",
    re.IGNORECASE,
)
_NOT_ENOUGH: Final = re.compile(
    r"(?:n['\u2019]t|\b(?:not|no|without|lacks?|never))\s(?:\w{1,12}\s){0,3}?(?:enough|sufficient|conclusive|definitive)\b",
    re.IGNORECASE,
)
_CONCEDES_BEHIND: Final = re.compile(r"(?:が|けど|けれど|けれども|のに|지만|는데)\s{0,3}$")
_WHICH: Final = re.compile(r"\W{0,5}(?:which|that|who)\s", re.IGNORECASE)
_SHARE: Final = re.compile(r"(?<![\d.])(?:[0-4]?[0-9])(?:\.[0-9]{1,3})?\s?(?:%|percent\b)")
_UNSURE_GLYPHS: Final = re.compile(r"[没沒无未][^,]{0,60}?(?:说明|表明|证明|显示|意味)")
_OF_A_SAYING: Final = re.compile(r"的?(?:说法|观点|猜测|可能性|嫌疑)")
_LOW: Final = re.compile(r"[低小不没沒无未]|排除")

_READ: Final = 10_000
"""Number of characters that are parsed at each end of a longer text; answers state their claim there."""
_REACH: Final = 200
"""Number of characters around a label word in which negations and doubts about it are searched."""
_SHORT_GAP: Final = 2
"""Maximum number of words between the negation of a noun and the claim, as in `no obviously fake clip`."""


def parse_claimed_label(text: str) -> Label | Unparsed:
    """Return the label that `text` claims; `Unparsed` as `MISSING` if it names none, else `AMBIGUOUS`."""
    chosen: Label | None = None
    asked: Label | None = None
    turned = divided = named = supposed = False
    earlier = ""
    for clause in split_clauses(_normalise_claim_text(text)):
        turned |= is_contradicting_clause(clause.text)
        earlier = earlier if clause.opens == "clause" else ""
        supposed = is_hypothetical_clause(clause.text) or (supposed and clause.opens == "clause")
        words = list(_WORD.finditer(clause.text))
        about_clip = [word for word in words if _refers_to_clip(word)]
        named |= bool(about_clip)
        reply = claim_words.YES_NO.match(clause.text) if asked is not None else None
        label: Label | None
        if reply and asked is not None:
            label = _flip_label(asked) if reply["no"] else asked
        elif chosen is not None and claim_words.NOT_SO.fullmatch(clause.text):
            label, turned = _flip_label(chosen), True
        else:
            open_ended = (
                clause.asks
                or supposed
                or claim_words.CONCEDES.match(clause.text)
                or _offers_both_labels(words)
            )
            label = None if open_ended else _find_clause_claim(about_clip, earlier)
        asked = _get_word_label(about_clip[0]) if clause.asks and len(about_clip) == 1 else None
        earlier = f"{earlier} {clause.text}"[-2 * _REACH :]
        if label is None:
            continue
        divided = not turned and (divided or chosen not in {None, label})
        chosen, turned = label, False
    if chosen is not None and not divided:
        return chosen
    return build_unparsed_result(
        UnparsedReason.AMBIGUOUS if named else UnparsedReason.MISSING, text
    )


def is_answer_corrected(text: str) -> bool:
    """Return whether a text corrects itself after its last `</answer>`, which makes it ambiguous."""
    _, closed, behind = text.rpartition("</answer>")
    return bool(closed) and claim_words.CORRECTS.search(behind) is not None


def parse_label_field(text: str, read: Callable[[str], Label | Unparsed]) -> Label | Unparsed:
    """Return the label in the answer's label field, parsed by `read`, or `Unparsed`.

    A correction later in the text overrides the field. The reason is `MISSING` if no field contains
    a label, and `AMBIGUOUS` if fields disagree or are unclear.
    """
    plain = strip_markup(text)
    fields = parse_answer_fields(plain)
    stated = get_field_values(fields, "label")
    readings = [*map(read, stated), *_iter_affirmed_labels(fields), *_iter_digit_labels(fields)]
    if not readings and find_first_json_object(plain):
        claimed = parse_claimed_label("\n".join(field.value for field in fields))
        return (
            claimed
            if isinstance(claimed, Label)
            else build_unparsed_result(UnparsedReason.AMBIGUOUS, text)
        )
    labels = {reading for reading in readings if isinstance(reading, Label)}
    if stated and (
        correction := claim_words.CORRECTS.search(plain, plain.rfind(stated[-1]) + len(stated[-1]))
    ):
        corrected = parse_claimed_label(plain[correction.start() :])
        labels = {corrected} if isinstance(corrected, Label) else labels
    if len(labels) == 1:
        return labels.pop()
    unclear = any(
        isinstance(r, Unparsed) and r.reason is UnparsedReason.AMBIGUOUS for r in readings
    )
    return build_unparsed_result(
        UnparsedReason.AMBIGUOUS if labels or unclear else UnparsedReason.MISSING, text
    )


def _iter_affirmed_labels(fields: Iterable[AnswerField]) -> Iterator[Label]:
    """Yield labels from fields that are named after a label and answered yes or no: `is_fake: true`."""
    for field in fields:
        word = _WORD.search(field.name.replace("_", " "))
        reply = claim_words.TRUTH.fullmatch(field.value)
        if word and reply and field.kind in {None, "real"}:
            yield _flip_label(_get_word_label(word)) if reply["no"] else _get_word_label(word)


def _iter_digit_labels(fields: Iterable[AnswerField]) -> Iterator[Label]:
    """Yield the label of a field that is 1 if the other is 0; a single field does not define 1."""
    words = ((_WORD.fullmatch(field.name.replace("_", " ")), field.value) for field in fields)
    seen = {(_get_word_label(word), digit) for word, digit in words if word and digit in {"0", "1"}}
    for label in Label:
        if seen == {(label, "1"), (_flip_label(label), "0")}:
            yield label


def _normalise_claim_text(text: str) -> str:
    ends = text if len(text) <= 2 * _READ else f"{text[:_READ]}\n{text[-_READ:]}"
    affirmed = claim_words.AFFIRMING_GLYPHS.sub(
        " ", claim_words.AFFIRMS.sub(" ", strip_markup(ends))
    )
    return claim_words.ANYTHING_BUT.sub(" not ", affirmed)


def is_generated_field_name(name: str) -> bool:
    """Return whether a field's name is a word for generated clips, such as `fake_video`."""
    word = _WORD.search(name.replace("_", " "))
    return word is not None and _get_word_label(word) is Label.GENERATED


def _offers_both_labels(words: Sequence[re.Match[str]]) -> bool:
    """Return whether two label words are offered as alternatives, as in `real or fake`."""
    return any(
        claim_words.OR.fullmatch(word.string, word.end(), following.start())
        and _get_word_label(word) is not _get_word_label(following)
        for word, following in pairwise(words)
    )


def _find_clause_claim(telling: Iterable[re.Match[str]], earlier: str) -> Label | None:
    """Return a clause's label from its label words and earlier clauses; `None` if none or both."""
    labels = {
        label
        for word in telling
        if (label := _find_label_claimed_by_word(word, earlier)) is not None
    }
    return labels.pop() if len(labels) == 1 else None


def _find_label_claimed_by_word(word: re.Match[str], earlier: str) -> Label | None:
    before, after = _get_preceding_text(word), word.string[word.end() : word.end() + _REACH]
    named = _get_word_label(word)
    if _is_reported_claim(before) or _CALLING.match(before) or _OF_A_SAYING.match(after):
        refutations = (claim_words.UNTRUE.search(after), _LOW.search(after))
        refuted = (
            _is_claim_negated(before, earlier) or _is_claim_negated(after, "") or any(refutations)
        )
        return _flip_label(named) if refuted else None
    in_part = claim_words.OF_PARTS.search(before) and not claim_words.NEGATIVE_SUBJECT.search(
        before
    )
    if in_part or _is_doubted_claim(word.string, before, after):
        return None
    if claim_words.INSTEAD.search(before):
        return named if "less" in before else _flip_label(named)
    denied = (
        _is_claim_negated_after(after)
        if _uses_postposed_negation(word.string)
        else _is_claim_negated(before, earlier)
    )
    if denied is None or (not denied and _is_label_only_mentioned(before)):
        return None
    return _flip_label(named) if denied else named


def _is_label_only_mentioned(before: str) -> bool:
    """Return whether the text before a label only mentions it (`to call it ...`) without claiming it."""
    call = _TO_CALL.search(before)
    return call is not None and not call["ready"]


def _is_reported_claim(before: str) -> bool:
    reports = [match.end() for match in claim_words.REPORTS.finditer(before)]
    return bool(reports) and not claim_words.SUBJECT.search(before, reports[-1] + 25)


def _is_doubted_claim(clause: str, before: str, after: str) -> bool:
    if (
        is_first_impression_clause(clause)
        or _NOT_ENOUGH.search(before)
        or _CONCEDES_BEHIND.search(clause)
    ):
        return True
    if claim_words.DOUBTING_GLYPHS.search(before) or claim_words.DOUBTING_AFTER.search(after):
        return True
    doubted = claim_words.DOUBTS.search(claim_words.REFUTES.sub(" ", before)) or _SHARE.search(
        before
    )
    return doubted is not None and claim_words.WOULD_SAY.search(before) is None


def _uses_postposed_negation(clause: str) -> bool:
    return claim_words.SPEAKS_BACKWARDS.search(clause) is not None


def _is_claim_negated_after(after: str) -> bool | None:
    following = _WORD.search(after)
    gap = after[: following.start()] if following else after
    n_denials = len(claim_words.DENYING_AFTER.findall(gap))
    return None if n_denials > 1 else bool(n_denials)


def _is_claim_negated(before: str, earlier: str) -> bool | None:
    """Return whether the text before a claim, or an earlier clause, negates it; `None` if ambiguous."""
    rest, n_refuting = claim_words.REFUTES.subn(" ", before)
    rest, n_short = claim_words.DENIES_SHORT.subn(" ", rest)
    verbs = {match[0].lower() for match in claim_words.DENIES.finditer(rest)}
    n_verbs = len(verbs - {"neither", "nor"}) + bool(verbs & {"neither", "nor"})
    rest = claim_words.DENIES.sub(" ", rest)
    together = {match[0].lower() for match in claim_words.DENIES_TOGETHER.finditer(rest)}
    nouns: list[bool | None] = []
    if together == {"no"} and not claim_words.ROMANCE.search(rest):
        together = set()
    if not together:
        nouns = [
            _is_claim_negated_by_noun(noun[0], rest[noun.end() :])
            for noun in claim_words.DENIES_NOUN.finditer(rest)
        ]
    n_glyphs = len(claim_words.DENYING_GLYPHS.findall(rest))
    total = n_refuting + n_short + n_verbs + bool(together) + any(nouns) + n_glyphs
    if total > 1 or (total == 0 and (None in nouns or _UNSURE_GLYPHS.search(rest))):
        return None
    return total == 1 or _is_negation_carried_over(before, earlier)


def _is_claim_negated_by_noun(noun: str, gap: str) -> bool | None:
    """Return whether `no` or the like negates the claim after `gap`, not its noun; `None` if ambiguous."""
    verb = claim_words.SUGGESTS.search(gap)
    if (
        verb
        and noun.lower().endswith(" of")
        and not claim_words.EVIDENCE.search(gap, 0, verb.start())
    ):
        return False
    subject = claim_words.SUBJECT.search(gap)
    if subject is None:
        words_between = gap.split()
        is_near = len(words_between) <= _SHORT_GAP
        return (
            True
            if is_near or claim_words.EVIDENCE.search(gap) or claim_words.BRIDGES.search(gap)
            else None
        )
    way = gap[: subject.start()].strip()
    nearest = way.split()[-2:]
    if claim_words.BRIDGES.search(way) or any(
        claim_words.EVIDENCE.fullmatch(word) for word in nearest
    ):
        return True
    return None if claim_words.SUGGESTS.search(way) else False


def _is_negation_carried_over(before: str, earlier: str) -> bool | None:
    """Return whether an earlier negation applies here; `None`, ambiguous, after `which` or the like."""
    denials = (
        claim_words.DENIES,
        claim_words.DENIES_SHORT,
        claim_words.DENIES_TOGETHER,
        claim_words.DENIES_NOUN,
        claim_words.DENYING_GLYPHS,
    )
    if not any(table.search(earlier) for table in denials):
        return False
    if claim_words.THAT.match(before) or claim_words.POLARITY.search(before):
        return True
    start = _WHICH.match(before)
    verb = claim_words.SUGGESTS.match(
        before, start.end() if start else len(before) - len(before.lstrip())
    )
    subject = claim_words.NEGATIVE_SUBJECT.search(earlier)
    if verb is None or subject is None:
        return False
    return None if start else True


def _get_word_label(word: re.Match[str]) -> Label:
    is_real = word["real"] or word["real_phrase"] or word["real_glyphs"]
    return Label.REAL if is_real else Label.GENERATED


def _refers_to_clip(word: re.Match[str]) -> bool:
    if word["real_glyphs"] or word["generated_glyphs"]:
        return True
    is_phrase = word["real_phrase"] or word["generated_phrase"]
    after = claim_words.FOLLOWS.match(word.string, word.end())
    if after is None and not is_phrase and not _CAPITAL.fullmatch(word[0]):
        return False
    if after is not None and after["clip"]:
        return not (
            _ANY_SUCH.match(word.string, after.end())
            and _ARTICLE.fullmatch(_get_preceding_text(word))
        )
    before = _get_preceding_text(word)
    if _TOO.search(before) or claim_words.EVIDENCE.search(before):
        return True
    return any(
        matches(before)
        for matches in (claim_words.SUBJECT.search, claim_words.LITTLE.fullmatch, _GLYPHS.search)
    )


def _get_preceding_text(word: re.Match[str]) -> str:
    return word.string[max(0, word.start() - _REACH) : word.start()]


def _flip_label(label: Label) -> Label:
    return Label.GENERATED if label is Label.REAL else Label.REAL
