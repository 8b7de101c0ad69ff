"""Check for visible watermarks: texts and logos over the picture that may name a generator."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from unreel.core.box import Box
from unreel.core.errors import MissingExtraError
from unreel.core.failure import Failure
from unreel.core.safe_text import sanitise_line
from unreel.curation.watermark.detection import (
    MIN_FRAMES,
    WatermarkSearchResult,
    build_ocr_reader,
    find_watermarks,
)
from unreel.media.reader import MediaReader
from unreel.report.review.provenance import (
    VISIBLE_WATERMARKS,
    FileOriginCheck,
    FileOriginCheckOutcome,
    build_skipped_watermark_check,
)

_SAMPLING = "uniform-12"
_LONGEST_SIDE = 960
_READ_SIDE = 640
"""Longest side for text detection: as good as full size, in a quarter of the time."""
_LONGEST_TEXT = 60
_MAX_WATERMARKS = 6
_THIRDS = (1 / 3, 2 / 3)

_AI_GENERATED = "AI-generated"
_ANYWHERE = {
    "klingai": "Kling",
    "\u53ef\u7075": "Kling",
    "hailuo": "Hailuo",
    "\u6d77\u87ba": "Hailuo",
    "pixverse": "PixVerse",
    "dreamina": "Dreamina",
    "\u5373\u68a6": "Jimeng",
    "jimeng": "Jimeng",
    "seedance": "Seedance",
    "runwayml": "Runway",
    "pikalabs": "Pika",
    "pikaart": "Pika",
    "lumaai": "Luma",
    "dreammachine": "Luma",
    "haiperai": "Haiper",
    "viduai": "Vidu",
    "synthesia": "Synthesia",
    "heygen": "HeyGen",
    "invideoai": "InVideo",
    "imaginedwithai": "Meta AI",
    "aigenerated": _AI_GENERATED,
    "generatedbyai": _AI_GENERATED,
    "generatedwithai": _AI_GENERATED,
    "madewithai": _AI_GENERATED,
    "ai\u751f\u6210": _AI_GENERATED,
}
"""Generator by part of a mark, without spaces and signs, that hardly any other word contains."""
_WORDS = {
    "kling": "Kling",
    "sora": "Sora",
    "sora2": "Sora",
    "veo": "Veo",
    "veo2": "Veo",
    "veo3": "Veo",
    "runway": "Runway",
    "pika": "Pika",
    "luma": "Luma",
    "vidu": "Vidu",
    "haiper": "Haiper",
    "minimax": "MiniMax",
    "genmo": "Genmo",
    "metaai": "Meta AI",
    "grok": "Grok",
}
"""Generator by whole word, because these words are parts of other words."""
_STATES = re.compile(r"\b(?:made|generated|created)\s(?:with|by|in)\b", re.IGNORECASE)
_SIMILAR_LETTERS = str.maketrans({"l": "i", "1": "i", "|": "i", "0": "o"})
"""Translation table that merges letters which OCR confuses."""
_DIGITS = frozenset("23456789io")
"""Digits after that translation: a mark may end with a version."""


def check_visible_watermarks(file: Path, reader: MediaReader) -> FileOriginCheck:
    """Search the clip at `file` for visible watermarks; the result lists parts that were not searched."""
    sampled = reader.frames(file, sampling=_SAMPLING, longest_side=_LONGEST_SIDE)
    if isinstance(sampled, Failure):
        return build_skipped_watermark_check(sanitise_line(str(sampled)))
    if len(sampled.frames) < MIN_FRAMES:
        return build_skipped_watermark_check(
            f"the clip has {len(sampled.frames)} frames, too few to find static marks."
        )
    read_text, unread = None, ""
    try:
        read_text = build_ocr_reader(detect_side=_READ_SIDE)
    except MissingExtraError as error:
        unread = f"Text on the picture was not searched: {error}."
    result = find_watermarks([frame.rgb() for frame in sampled.frames], read_text=read_text)
    return build_watermark_check(result, unread=unread)


def build_watermark_check(result: WatermarkSearchResult, *, unread: str = "") -> FileOriginCheck:
    """Describe the watermarks in `result` as a file check."""
    sentences = []
    for mark in list(result.found)[:_MAX_WATERMARKS]:
        words = f"The words \u201c{_shorten_text(mark.text)}\u201d stay"
        subject = words if mark.text else "A logo stays"
        sentences.append(f"{subject} in the {_format_position(mark.box)} while the picture moves.")
    if suspected := _quote_texts(mark.text for mark in result.suspected):
        sentences.append(f"{suspected} can be read near the border: a mark, or words of the scene.")
    if roaming := _quote_texts(result.roaming):
        sentences.append(
            f"{roaming} can be read at several places, one at a time, as in a mark that changes its place."
        )
    is_empty = not sentences
    if is_empty:
        part = "" if result.inconclusive is None else " in the part of the picture that moves"
        subject = "No logo" if unread else "None"
        sentences.append(f"{subject} was found{part}. Marks are easily cropped or painted over.")
    if result.inconclusive is not None:
        sentences.append(f"Not everything could be searched: {result.inconclusive}.")
    if unread:
        sentences.insert(0, unread)
    named = list(_iter_generator_names(result))
    claim = next((sentence for sentence, is_claim in named if is_claim), "")
    hint = "" if claim else next((sentence for sentence, _ in named), "")
    sentences += [hint] if hint else []
    nothing = FileOriginCheckOutcome.NOT_SEARCHED if unread else FileOriginCheckOutcome.NOTHING
    return FileOriginCheck(
        name=VISIBLE_WATERMARKS,
        found=nothing if is_empty else FileOriginCheckOutcome.SOMETHING,
        says=" ".join(sentences),
        claim=claim,
        hint=hint,
    )


def find_generator_name(text: str) -> str | None:
    """Return the known generator that `text` names; `None` if `text` names no known generator."""
    letters = _normalise_letters(text)
    for part, generator in _ANYWHERE.items():
        if _normalise_letters(part) in letters:
            return generator
    words = {_normalise_letters(word) for word in re.split(r"\W+", text)} | {letters}
    return next((name for word, name in _WORDS.items() if _normalise_letters(word) in words), None)


def _iter_generator_names(result: WatermarkSearchResult) -> Iterator[tuple[str, bool]]:
    """Yield a sentence for each text that names a generator, and whether it calls the clip generated.

    An explicit statement does, and a known mark over the picture; a mere name may have another
    meaning, as in the caption "Veo la lluvia".
    """
    fixed = [(mark.text or "", f"in its {_format_position(mark.box)}", 1) for mark in result.found]
    roaming = [(text, "at changing places", 1) for text in result.roaming]
    near = [
        (mark.text or "", f"in its {_format_position(mark.box)}", 0) for mark in result.suspected
    ]
    for text, position, is_mark in (*fixed, *roaming, *near):
        generator = find_generator_name(text)
        if generator is None:
            continue
        letters = _normalise_letters(text)
        names = (_normalise_letters(part) for part, name in _ANYWHERE.items() if name == generator)
        is_whole = any(set(letters.replace(mark, "", 1)) <= _DIGITS for mark in names)
        is_claim = generator == _AI_GENERATED or _STATES.search(text) or (is_mark and is_whole)
        meaning = "which marks it as generated"
        if generator != _AI_GENERATED:
            meaning = f"as on clips made with {generator}"
        if not is_claim:
            meaning = f"which may be the name of the generator {generator}, or words of the scene"
        sentence = f"The words \u201c{_shorten_text(text)}\u201d can be read {position}, {meaning}."
        yield sentence, bool(is_claim)


def _quote_texts(texts: Iterable[str | None]) -> str:
    quoted = [f"\u201c{_shorten_text(text)}\u201d" for text in texts if text]
    return ", ".join(quoted[:_MAX_WATERMARKS])


def _format_position(box: Box) -> str:
    across, down = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    column = "left" if across < _THIRDS[0] else "right" if across > _THIRDS[1] else ""
    row = "upper" if down < _THIRDS[0] else "lower" if down > _THIRDS[1] else ""
    if row and column:
        return f"{row} {column} corner"
    if row:
        return f"{row} edge"
    return f"{column} edge" if column else "middle"


def _normalise_letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold())).translate(_SIMILAR_LETTERS)


def _shorten_text(text: str | None) -> str:
    return sanitise_line(text or "")[:_LONGEST_TEXT]
