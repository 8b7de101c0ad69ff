"""Data of a report's clip browser: a small index that is loaded first, and pages loaded on demand."""

import base64
import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

from unreel.core.box import Box
from unreel.core.chunks import iter_chunks
from unreel.core.clip import Generated
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.span import convert_to_microseconds
from unreel.core.verdict import TraceVerdict, Unparsed, is_answer_correct
from unreel.protocols.locate.verdict_texts import describe_located_segment
from unreel.report.clips.clip_files import (
    CHUNK,
    FAILED,
    RIGHT,
    UNREADABLE,
    WRONG,
    PaginatedClips,
    ReportMediaFolder,
    format_clip_page_path,
)
from unreel.report.entrants import AnsweredQuestion, ReportClip, ReportEntrant, parse_answer_notes

LONGEST_TEXT = 20_000
"""Maximum number of letters of an answer on the page."""
SHORT_ID = 12


_SubjectAnswers = tuple[tuple[int, AnsweredQuestion], ...]
"""Answered questions about one clip or pair, each with the index of its entrant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipBrowserData:
    """Index of the clip browser, and the details of its first page; other pages are in separate files."""

    index: Mapping[str, Any]
    """Index with the lines of the first page, and the filter values of each page."""
    packed: str
    """Compressed details of the clips on the first page."""
    lines: Sequence[list[Any]]
    """Lines of the index, one for each clip: see `PaginatedClips.lines`."""
    n_answers: int
    addresses: Mapping[tuple[str, str], Mapping[str, str]]
    """URL parameters of a clip or pair, by its benchmark and its key."""

    @property
    def n_clips(self) -> int:
        """Return the number of clips, or of pairs, in the browser."""
        return len(self.lines)


def build_clip_browser(
    entrants: Sequence[ReportEntrant],
    names: Sequence[str],
    media: ReportMediaFolder,
    *,
    put: Callable[[str, str], object],
) -> ClipBrowserData:
    """Build the clip browser of all `entrants`, shown under `names`, and write its media to `media`.

    `put` is called once for each page of clips, with the file name and the text of the page, so
    that no page stays in memory.
    """
    indexes: dict[tuple[str, str], int] = {}
    answers_by_subject: list[_SubjectAnswers] = []
    for entrant_index, entrant in enumerate(entrants):
        for item in entrant.items:
            number = indexes.setdefault((entrant.benchmark, item.key), len(answers_by_subject))
            if number == len(answers_by_subject):
                answers_by_subject.append(((entrant_index, item),))
            else:
                answers_by_subject[number] = (*answers_by_subject[number], (entrant_index, item))
    counts: Counter[str] = Counter()
    ids = []
    for _, key in indexes:  # a repeated id gets a number
        short = "-".join(part[:SHORT_ID] for part in key.split("+"))
        counts[short] += 1
        ids.append(short if counts[short] == 1 else f"{short}.{counts[short]}")
    lines = _ClipIndexLines(ids, answers_by_subject)
    creators, kinds = lines.creators, lines.kinds
    details = (
        {
            "clips": [
                _build_clip_json(subject, media) for subject in subject_answers[0][1].subjects
            ],
            "answers": [_build_answer_json(index, item) for index, item in subject_answers],
        }
        for subject_answers in answers_by_subject
    )
    pages = PaginatedClips(names=names, creators=creators.listed, kinds=kinds.listed, lines=lines)
    first, hashes, holds = "", [], []
    for number, chunk in enumerate(iter_chunks(details, CHUNK)):
        text = json.dumps(chunk, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        packed = base64.b64encode(gzip.compress(text.encode(), compresslevel=6, mtime=0)).decode()
        first = first or packed
        hashes.append(pages.made(number, packed))
        holds.append(pages.holds(number))
        put(format_clip_page_path(number), pages.page(number, packed))
    index = {
        "creators": creators.listed,
        "kinds": kinds.listed,
        "entrants": [
            {
                "name": name,
                "protocol": entrant.protocol,
                "condition": str(entrant.condition),
                "floor": entrant.is_floor,
                "places": entrant.instrument.needs_box_space,
            }
            for name, entrant in zip(names, entrants, strict=True)
        ],
        "clips": lines[:CHUNK],
        "chunk": CHUNK,
        "n_clips": len(lines),
        "pages": holds,
        "made": hashes,
    }
    return ClipBrowserData(
        index=index,
        packed=first,
        lines=lines,
        n_answers=sum(map(len, answers_by_subject)),
        addresses=_ClipLinkParameters(indexes, ids),
    )


class _ClipLinkParameters(Mapping[tuple[str, str], Mapping[str, str]]):
    """URL parameters that link to each clip or pair in the browser, created on demand."""

    def __init__(self, indexes: Mapping[tuple[str, str], int], ids: Sequence[str]) -> None:
        self._indexes, self._ids = indexes, ids

    def __getitem__(self, question: tuple[str, str]) -> Mapping[str, str]:
        index = self._indexes[question]
        page = {"page": str(index // CHUNK + 1)} if index >= CHUNK else {}
        return {"clip": self._ids[index]} | page

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._indexes)

    def __len__(self) -> int:
        return len(self._indexes)


class _DistinctWordNumbers:
    """Numbers of distinct words, so that the browser's index stores each word once."""

    def __init__(self) -> None:
        self.listed: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, word: str) -> int:
        if word not in self._numbers:
            self._numbers[word] = len(self.listed)
            self.listed.append(word)
        return self._numbers[word]


class _ClipIndexLines(Sequence[list[Any]]):
    """Lines of the index, made page by page: id, name, creator (-1: real), trace categories, answers."""

    def __init__(self, ids: Sequence[str], answers_by_subject: Sequence[_SubjectAnswers]) -> None:
        self.creators, self.kinds = _DistinctWordNumbers(), _DistinctWordNumbers()
        self._ids, self._answers_by_subject = ids, answers_by_subject
        self._page: tuple[range, list[list[Any]]] = range(0), []
        for _ in self:
            pass  # numbers creators and kinds in the order of the clips

    def __len__(self) -> int:
        return len(self._answers_by_subject)

    def __iter__(self) -> Iterator[list[Any]]:
        return map(self._line, range(len(self)))

    @overload
    def __getitem__(self, index: int) -> list[Any]: ...

    @overload
    def __getitem__(self, key: slice) -> list[list[Any]]: ...

    def __getitem__(self, key: int | slice) -> list[Any]:
        if isinstance(key, int):
            return self._line(key)
        indexes = range(len(self))[key]
        if self._page[0] != indexes:
            self._page = indexes, [self._line(i) for i in indexes]
        return self._page[1]

    def _line(self, index: int) -> list[Any]:
        subject_answers = self._answers_by_subject[index]
        entries = [subject.entry for subject in subject_answers[0][1].subjects]
        made_by = [e.origin.creator for e in entries if isinstance(e.origin, Generated)]
        categories = sorted({c.value for e in entries for t in e.traces for c in t.categories})
        return [
            self._ids[index],
            " | ".join(entry.name for entry in entries),
            self.creators.number(made_by[0]) if made_by else -1,
            [self.kinds.number(kind) for kind in categories],
            [[number, grade_answer(item)] for number, item in subject_answers],
        ]


def grade_answer(question: AnsweredQuestion) -> int:
    """Return right, wrong, unreadable or failed; a realism score far from the true one is wrong."""
    if isinstance(question.outcome, Failure):
        return FAILED
    right = is_answer_correct(
        question.outcome, question.rows[0].truth, question.subjects[0].entry.label
    )
    if right is None:
        return UNREADABLE
    return RIGHT if right else WRONG


def _build_clip_json(clip: ReportClip, media: ReportMediaFolder) -> dict[str, Any]:
    entry = clip.entry
    description = {
        "name": entry.name,
        "label": entry.label.value,
        "creator": entry.origin.creator if isinstance(entry.origin, Generated) else "",
        "setting": entry.origin.setting if isinstance(entry.origin, Generated) else "",
        "split": entry.split,
        "group": entry.group,
        "prompt": entry.prompt[:LONGEST_TEXT],
        "difficulty": entry.difficulty,
        "traces": [
            {
                "start_us": trace.span.start_us,
                "end_us": trace.span.end_us,
                "boxes": [
                    {"at_us": mark.at_us, **_build_box_json(mark.box)} for mark in trace.track
                ],
                "kinds": sorted(category.value for category in trace.categories),
                "text": trace.explanation[:LONGEST_TEXT],
            }
            for trace in entry.traces
        ],
        "rating": entry.rating
        and {
            "score": entry.rating.score,
            "problem": entry.rating.problem,
            "adherence": entry.rating.adherence,
        },
        # The number of people's votes for generated, and the number of all votes.
        "votes": [sum(vote.label is Label.GENERATED for vote in entry.votes), len(entry.votes)]
        if entry.votes
        else None,
    }
    if isinstance(clip.clip, Failure):
        return description | {"failure": _build_failure_json(clip.clip)}
    source, reason = media.add(clip.clip)
    video, rate = clip.clip.facts.video, clip.clip.facts.video.average_rate
    return description | {
        "id": clip.clip.id,
        "width": video.width,
        "height": video.height,
        "duration_us": convert_to_microseconds(video.duration_s),
        "first_us": convert_to_microseconds(video.first_at_s),
        "rate": None if video.variable_rate else [rate.numerator, rate.denominator],
        "n_frames": video.n_frames,
        "src": source,
        "absent": reason,
    }


def _build_box_json(box: Box) -> dict[str, float]:
    return {edge: round(getattr(box, edge), 5) for edge in ("x0", "y0", "x1", "y1")}


def _build_failure_json(failure: Failure) -> dict[str, str]:
    return {
        "reason": failure.reason.value,
        "detail": failure.detail[:LONGEST_TEXT],
        "remedy": failure.reason.remedy,
    }


def _build_answer_json(index: int, question: AnsweredQuestion) -> dict[str, Any]:
    stored, outcome = question.stored, question.outcome
    answer: dict[str, Any] = {"entrant": index, "status": grade_answer(question)}
    if isinstance(outcome, Failure):
        answer["failure"] = _build_failure_json(outcome)
    else:
        text = stored.get("text") or ""
        answer["text"] = text[:LONGEST_TEXT]
        answer["cut"] = max(0, len(text) - LONGEST_TEXT)
        parts: dict[str, Any] = {}
        unparsed = {}
        for part in outcome.__slots__:
            value = getattr(outcome, part)
            if isinstance(value, Box):
                parts[part] = _build_box_json(value)
            elif isinstance(value, tuple):
                parts[part] = "; ".join(map(describe_located_segment, value)) or "none"
            elif isinstance(value, Unparsed):
                # The answer "real" needs no box, time or explanation.
                if part == "label" or getattr(outcome, "label", None) is not Label.REAL:
                    unparsed[part] = value.reason.value
            else:
                parts[part] = value[:LONGEST_TEXT] if isinstance(value, str) else value
        answer["said"], answer["unread"] = parts, unparsed
    if isinstance(outcome, TraceVerdict):
        comparisons = []
        for row in question.rows:
            truth, comparison = row.truth, {}
            if outcome.label is Label.REAL or truth.trace is None:
                continue
            if truth.box is not None and isinstance(outcome.box, Box):
                comparison["iou"] = round(truth.box.iou(outcome.box), 3)
            if isinstance(outcome.start_us, int):
                comparison["late_us"] = outcome.start_us - truth.start_us
            if row.text_score is not None:
                comparison["judged"] = row.text_score
            comparisons.append(comparison)
        answer["meets"] = comparisons
    columns = ("latency_us", "input_tokens", "output_tokens", "cost_usd")
    answer |= {name: stored[name] for name in columns if stored.get(name) is not None}
    answer["shown_us"] = list(iter_shown_frame_times(question))
    return answer


def iter_shown_frame_times(question: AnsweredQuestion) -> Iterator[list[int]]:
    """Yield, for each clip of the question, the times of the frames shown to the model (microseconds)."""
    notes = parse_answer_notes(question)
    for _, frames in zip(question.subjects, notes.get("frames") or (), strict=False):
        yield [convert_to_microseconds(Fraction(at)) for _, at in frames]
