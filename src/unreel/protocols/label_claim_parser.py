"""Parser of prose that claims a clip to be real or generated.

Only plain statements are read: a label, or a sentence whose other words are on a short list, such as `I think
this video is probably fake`. `not` directly before the label inverts it. Every other statement with a label
word is left unread: questions, conditions, doubts, reports, comparisons, percentages, parts of the picture.
A doubt about the clip after the last plain statement makes the answer ambiguous. The words are in `claim_words.py`.
"""

# ruff: noqa: RUF001  punctuation of other languages

import re
from collections.abc import Callable, Iterator

from unreel.core.judgement import Label
from unreel.core.verdict import Unparsed, UnparsedReason
from unreel.protocols import claim_words
from unreel.protocols.answer_text import strip_markup
from unreel.protocols.field_parser import (
    find_first_json_object,
    get_field_values,
    parse_answer_fields,
)

_LABEL = re.compile(
    rf"(?<![{claim_words.LETTER}-])(?:(?P<real>{claim_words.REAL_PHRASE}|{claim_words.REAL})"
    rf"|(?P<generated>{claim_words.GENERATED_PHRASE}|{claim_words.GENERATED}))(?![{claim_words.LETTER}-])"
    rf"|(?P<real_glyphs>{claim_words.REAL_GLYPHS})|(?P<generated_glyphs>{claim_words.GENERATED_GLYPHS})",
    re.IGNORECASE,
)
_STATEMENT_END = re.compile(
    r"(?P<sentence>(?<![0-9])[.:](?=\s|$|['\"*)])|(?<=[0-9])\.(?=\s|$)|[?!;\n。？！；؟])"
    r"|[,，、،]|\s[-\u2013\u2014]\s|\u2014"
    r"|(?=\b(?:because|since|so|hence|thus|therefore|although|though|while|whereas"
    r"|weil|daher|porque|donc|car|perché|porque|поэтому|потому)\b)",
    re.IGNORECASE,
)
_TURNS = re.compile(
    r"\W{0,5}(?:but|yet|however|so|hence|thus|therefore|overall|in\sconclusion|to\sconclude|ultimately|final|verdict"
    r"|my\s(?:final|verdict|answer|conclusion)|answer|conclusion|aber|sondern|daher|pero|mais|donc|ma|mas|но|поэтому)\b"
    r"|\W{0,5}(?:但|因此|所以|总之|综上|结论|しかし|したがって|結論|하지만|따라서|결론)",
    re.IGNORECASE,
)
"""Words at the start of a statement that let a later claim override an earlier one."""

_READ = 10_000
"""Number of characters that are parsed at each end of a longer text; answers state their claim there."""


def parse_claimed_label(text: str) -> Label | Unparsed:
    """Return the label that `text` claims; `Unparsed` as `MISSING` if it names none, else `AMBIGUOUS`."""
    plain = strip_markup(text if len(text) <= 2 * _READ else f"{text[:_READ]}\n{text[-_READ:]}")
    claimed: Label | None = None
    is_named = is_turned = is_divided = is_doubted = False
    for statement, earlier, ending in _iter_statements(plain):
        is_turned |= _TURNS.match(statement) is not None
        is_doubted |= claimed is not None and claim_words.CORRECTS.match(statement) is not None
        words = list(_LABEL.finditer(statement))
        if not words:
            is_undone = claim_words.UNDOES.match(statement) or (
                earlier.strip() and claim_words.QUALIFIES.match(statement)
            )
            is_doubted |= claimed is not None and bool(is_undone)
            continue
        is_named |= len(words) > 1 or claim_words.CLIP.search(statement) is not None
        labels = {_read_plain_claim(word, words, earlier, ending) for word in words}
        label = labels.pop() if len(labels) == 1 else None
        if label is None:
            is_doubted |= claim_words.CLIP.search(statement) is not None
            continue
        is_divided = not is_turned and (is_divided or claimed not in {None, label})
        claimed, is_turned, is_doubted = label, False, False
    if claimed is not None and not is_divided and not is_doubted:
        return claimed
    return Unparsed.of(UnparsedReason.AMBIGUOUS if is_named else UnparsedReason.MISSING, text)


def _iter_statements(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield each statement of a text, the earlier text of its sentence, and the mark that ends it."""
    start = sentence_start = 0
    for end in _STATEMENT_END.finditer(text):
        if text[start : end.start()].strip():
            yield text[start : end.start()], text[sentence_start:start], end[0].strip()
        start = end.end()
        if end["sentence"]:
            sentence_start = start
    if text[start:].strip():
        yield text[start:], text[sentence_start:start], ""


def _read_plain_claim(
    word: re.Match[str], words: list[re.Match[str]], earlier: str, ending: str
) -> Label | None:
    """Return the label that a word states in a plain statement; `None` if the statement is not plain."""
    index = words.index(word)
    start = words[index - 1].end() if index else 0
    end = words[index + 1].start() if index + 1 < len(words) else len(word.string)
    before = claim_words.BEFORE_LABEL.fullmatch(word.string, start, word.start())
    after = claim_words.AFTER_LABEL.match(word.string, word.end(), end)
    # `Real: 5%` and `Fake?` claim nothing; `If it were sharper, it is fake` and `Real, not` do not either.
    if before is None or after is None or ending in {":", "?", "？", "؟"}:
        return None
    if earlier.strip() and not (
        claim_words.SUBJECT_START.match(word.string) and not claim_words.DOUBTS.search(earlier)
    ):
        return None
    label = _get_word_label(word)
    return _flip_label(label) if before["negation"] else label


def is_answer_corrected(text: str) -> bool:
    """Return whether a text corrects itself after its last `</answer>`, which makes it ambiguous."""
    _, closed, after = text.rpartition("</answer>")
    return bool(closed) and claim_words.CORRECTS.search(after) is not None


def parse_label_field(text: str, read: Callable[[str], Label | Unparsed]) -> Label | Unparsed:
    """Return the label in the answer's label field, parsed by `read`, or `Unparsed`.

    The reason is `MISSING` if no field contains a label, and `AMBIGUOUS` if fields disagree, are unclear, or
    are corrected later in the text.
    """
    plain = strip_markup(text)
    fields = parse_answer_fields(plain)
    stated = get_field_values(fields, "label")
    readings = list(map(read, stated))
    digits: set[tuple[Label, str]] = set()
    for field in fields:
        # A field that is named after a label and answered yes or no: `is_fake: true`.
        name = field.name.replace("_", " ")
        word, reply = _LABEL.search(name), claim_words.TRUTH.fullmatch(field.value)
        if word and reply and field.kind in {None, "real"}:
            label = _get_word_label(word)
            readings.append(_flip_label(label) if reply["no"] else label)
        if (word := _LABEL.fullmatch(name)) and field.value in {"0", "1"}:
            digits.add((_get_word_label(word), field.value))
    # A label that is 1 if the other is 0; a single field does not define 1.
    readings += [label for label in Label if digits == {(label, "1"), (_flip_label(label), "0")}]
    if not readings and find_first_json_object(plain):
        claimed = parse_claimed_label("\n".join(field.value for field in fields))
        return (
            claimed if isinstance(claimed, Label) else Unparsed.of(UnparsedReason.AMBIGUOUS, text)
        )
    labels = {reading for reading in readings if isinstance(reading, Label)}
    is_corrected = bool(stated) and claim_words.CORRECTS.search(
        plain, plain.rfind(stated[-1]) + len(stated[-1])
    )
    if len(labels) == 1 and not is_corrected:
        return labels.pop()
    is_unclear = any(
        isinstance(reading, Unparsed) and reading.reason is UnparsedReason.AMBIGUOUS
        for reading in readings
    )
    return Unparsed.of(
        UnparsedReason.AMBIGUOUS if labels or is_unclear else UnparsedReason.MISSING, text
    )


def is_generated_field_name(name: str) -> bool:
    """Return whether a field's name is a word for generated clips, such as `fake_video`."""
    word = _LABEL.search(name.replace("_", " "))
    return word is not None and _get_word_label(word) is Label.GENERATED


def _get_word_label(word: re.Match[str]) -> Label:
    return Label.REAL if word["real"] or word["real_glyphs"] else Label.GENERATED


def _flip_label(label: Label) -> Label:
    return Label.GENERATED if label is Label.REAL else Label.REAL
