"""Answers of a reviewer from a file, joined with the benchmark entries they are about."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from unreel.benchmarks import cells
from unreel.benchmarks.entry import Entry, Rejected, Row, collect_entries
from unreel.benchmarks.localisation.predictions import (
    is_segment_prediction_file,
    read_segment_predictions,
)
from unreel.benchmarks.pairing import PairedEntries, find_requested_pairs, format_pair_name
from unreel.benchmarks.statistics import (
    build_no_matching_answer_error,
    build_no_question_error,
    build_no_usable_entry_error,
    build_unknown_split_error,
)
from unreel.benchmarks.tables import Cells, read_table_rows
from unreel.core.answer import Reply, Usage
from unreel.core.clip import get_first_creator, get_first_creator_setting
from unreel.core.content_ids import compute_placeholder_clip_id
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import build_question_subject
from unreel.protocols.answer_text import parse_answer_text
from unreel.protocols.box_space import parse_box_space
from unreel.protocols.locate.metrics import INSTRUMENT
from unreel.protocols.protocol import Mode, Protocol, ScoredQuestion, Subject

NAME_COLUMNS = ("name", "clip", "video", "video_id", "file")
PAIR_COLUMNS = ("first", "second")
FORM = (
    f"Write the columns text and one of {', '.join(NAME_COLUMNS)}, or first and second for a pair; failure "
    "instead of text gives the reason of a missing answer, protocol names the protocol"
)
Outcome = Reply | Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedAnswer:
    """One answer of an answers file: the name of its clip or pair, and the reply or failure."""

    name: str
    """Name of the clip or pair; "" if the row has only the key of a question."""
    outcome: Outcome
    key: str = ""
    """Value of `Question.key`; "" if the row answers every question about its clip."""
    protocol: str = ""
    """Protocol of the answer; "" for any."""


def read_answer_file(path: Path) -> Iterator[ImportedAnswer | Rejected]:
    """Yield the answers in the file `path`, in order; a row that cannot be read is a `Rejected`.

    The file is a JSONL, CSV, TSV or Parquet table. A JSON or text file is read as predictions of
    segments: see `unreel.benchmarks.localisation.predictions`.
    """
    if is_segment_prediction_file(path):
        for item in read_segment_predictions(path):
            if isinstance(item, Rejected):
                yield item
            else:
                name, text = item
                protocol = INSTRUMENT.protocol
                yield ImportedAnswer(name=name, outcome=Reply(text=text), protocol=protocol)
        return
    for number, row in enumerate(read_table_rows(path), start=1):
        if isinstance(row, Rejected):
            yield row
            continue
        try:
            yield parse_imported_answer(row)
        except InvalidValueError as error:
            yield Rejected(f"row {number}", str(error))


def parse_imported_answer(row: Cells) -> ImportedAnswer:
    """Parse one row of an answers file into an answer.

    The clip's name is in one of `NAME_COLUMNS`. A pair is written there as `FIRST | SECOND`, in the
    order shown, or in the columns `first` and `second`. The column `question` may give the key of
    one question instead. The column `text` holds the raw answer; if there is no answer, the column
    `failure` holds a failure reason or any text. Raise `InvalidValueError` if the row names no
    clip, pair or question, or a cell is invalid.
    """
    key = cells.parse_text_cell(row.get("question"), "question")
    if key and not _find_name_column(row):
        name = ""
    elif all(column in row for column in PAIR_COLUMNS):
        name = format_pair_name(*(_require_clip_name(row, column) for column in PAIR_COLUMNS))
    else:
        name = parse_clip_name_cell(row)
    protocol = cells.parse_text_cell(row.get("protocol"), "protocol")
    return ImportedAnswer(
        name=name, outcome=_parse_reply_or_failure(row, name or key), key=key, protocol=protocol
    )


def parse_clip_name_cell(row: Cells) -> str:
    """Return the clip's name in an answer row; raise `InvalidValueError` if there is none."""
    return _require_clip_name(row, _find_name_column(row))


def _find_name_column(row: Cells) -> str | None:
    return next((column for column in NAME_COLUMNS if column in row), None)


def _require_clip_name(row: Cells, column: str | None) -> str:
    name = cells.parse_text_cell(row[column], column) if column else ""
    if not name:
        cells.raise_invalid_cell(
            "the clip's name", name, f"Write it under one of {', '.join(NAME_COLUMNS)}"
        )
    return name


def _parse_reply_or_failure(row: Cells, question: str) -> Outcome:
    failure = cells.parse_text_cell(row.get("failure"), "failure")
    answer = row.get("text")
    input_tokens, output_tokens, latency_us = (
        None if cells.is_blank_cell(cell) else cells.parse_count_cell(cell, column)
        for column in ("input_tokens", "output_tokens", "latency_us")
        for cell in [row.get(column)]
    )
    if failure and not cells.is_blank_cell(answer):
        raise InvalidValueError(f"{question} has a text and a failure. Keep one of them")
    if failure:
        detail = cells.parse_text_cell(row.get("detail"), "detail")
        reason, _, remainder = failure.partition(":")
        if reason in {reason.value for reason in FailureReason}:
            message = detail or remainder.strip() or "as the answers file states"
            return Failure(FailureReason(reason), message)
        return Failure(FailureReason.UNSTATED, f"{failure}: {detail}" if detail else failure)
    if cells.is_blank_cell(answer):
        return Failure(FailureReason.EMPTY_REPLY, "the answers file contains no text")
    cells.parse_text_cell(answer, "text")
    usage = None
    if input_tokens is not None and output_tokens is not None:
        usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    return Reply(text=str(answer), usage=usage, latency_us=latency_us)


VOTER = "voter"
"""Name of the column with the voter; a row with it is a vote, of which a clip may have several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedAnswers:
    """Entries or pairs of a benchmark with their answers, and the answers and rows without a match."""

    pairs: tuple[tuple[Entry | PairedEntries, Outcome | None], ...]
    """Entries or pairs in the benchmark's order, each with its answer; `None` if the file has no answer."""
    unknown: tuple[str, ...]
    """Names in the file that are not in the benchmark."""
    rejected: tuple[Rejected, ...]
    """Rows of the benchmark or of the file that could not be read."""

    @property
    def n_unanswered(self) -> int:
        """Return the number of entries or pairs without an answer."""
        return sum(outcome is None for _, outcome in self.pairs)

    def in_split(self, split: str | None) -> "JoinedAnswers":
        """Return the entries of one split with their answers; all of them if `split` is `None`.

        Raise `UnknownNameError` if the split has no entry, or `InvalidSettingError` if the
        benchmark has no splits.
        """
        if split is None:
            return self
        require_known_split({subject.split for subject, _ in self.pairs}, split)
        pairs = tuple(pair for pair in self.pairs if pair[0].split == split)
        return replace(self, pairs=pairs)


def require_known_split(known: Collection[str], split: str) -> None:
    """Raise if `split` is none of the `known` splits of a benchmark.

    Raise `UnknownNameError` if no entry is in that split, or `InvalidSettingError` if the benchmark
    has no splits.
    """
    if split not in known:
        raise build_unknown_split_error(split, known)


def join_answers_with_entries(
    rows: Iterable[Row],
    source: Path | Mapping[str, str | Failure],
    subject: Subject = "clip",
    *,
    protocol: str | None = None,
) -> JoinedAnswers:
    """Match the benchmark entries in `rows` with answers: those of a file, or a mapping by clip name.

    An answer is matched by the entry's name or location, or by a unique file name. Answers about
    pairs are matched with two entries each, in their order. Answers of another protocol than
    `protocol` are skipped. Raise `UnreadableSourceError` if the file answers one clip twice, no row
    of it could be read, or pairs are required and it has none.
    """
    rejected: list[Rejected] = []
    if isinstance(source, Path):
        answers: dict[str, Outcome] = {}
        for_this: dict[str, Outcome] = {}
        for answer in read_answer_file(source):
            if isinstance(answer, Rejected):
                rejected.append(answer)
                continue
            if not answer.name:
                reason = "the row names a question and no clip. Add the clip's name"
                rejected.append(Rejected(answer.key, reason))
                continue
            if protocol is not None and answer.protocol not in {"", protocol}:
                continue
            known = for_this if answer.protocol else answers
            if answer.name in known:
                raise UnreadableSourceError(
                    str(source),
                    f"two answers about {answer.name!r}",
                    "Keep one answer for each clip",
                )
            known[answer.name] = answer.outcome
        if rejected and not (answers or for_this):
            raise UnreadableSourceError(
                str(source), f"no readable answers, first {rejected[0]}", FORM
            )
        path, answers = source, (answers | for_this)
    else:
        path = Path("answers")
        answers = {n: Reply(text=t) if isinstance(t, str) else t for n, t in source.items()}
    match = _match_pair_answers if subject == "pair" else _match_clip_answers
    return match(rows, answers, path=path, rejected=rejected)


def _match_clip_answers(
    rows: Iterable[Row], answers: Mapping[str, Outcome], *, path: Path, rejected: list[Rejected]
) -> JoinedAnswers:
    pairs: list[tuple[Entry, Outcome | None]] = []
    used: set[str] = set()
    files: dict[str, list[int]] = {}
    for row in rows:
        if isinstance(row, Rejected):
            rejected.append(row)
            continue
        keys = [key for key in dict.fromkeys((row.name, row.location)) if key in answers]
        if len(keys) > 1:
            raise UnreadableSourceError(
                str(path),
                f"two answers about {row.name!r}, one under its location",
                "Keep one answer for each clip",
            )
        used.update(keys)
        files.setdefault(PurePosixPath(row.location).name, []).append(len(pairs))
        pairs.append((row, answers[keys[0]] if keys else None))
    for name in answers.keys() - used:
        match files.get(name):
            case [place] if pairs[place][1] is None:
                used.add(name)
                pairs[place] = (pairs[place][0], answers[name])
    unknown = tuple(name for name in answers if name not in used)
    return JoinedAnswers(pairs=tuple(pairs), unknown=unknown, rejected=tuple(rejected))


def _match_pair_answers(
    rows: Iterable[Row], answers: Mapping[str, Outcome], *, path: Path, rejected: list[Rejected]
) -> JoinedAnswers:
    entries = collect_entries(rows, rejected)
    match = find_requested_pairs(entries, answers)
    if answers and len(match.unknown) == len(answers):
        raise UnreadableSourceError(
            str(path),
            f"no row names two clips of the benchmark, the first names {match.unknown[0]!r}",
            "Name both in the order shown, as 'FIRST | SECOND' or in the columns first and second",
        )
    return JoinedAnswers(
        pairs=tuple((pair, None if name is None else answers[name]) for pair, name in match.pairs),
        unknown=match.unknown,
        rejected=(*rejected, *match.rejected),
    )


PIXEL = "pixel"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorableRows:
    """Answers with ground truth that can be scored, and the entries or pairs that cannot be scored."""

    rows: tuple[ScoredQuestion[Any, Any], ...]
    not_asked: tuple[str, ...]
    """Names of entries or pairs without an answer."""
    without_truth: tuple[Rejected, ...]
    """Entries without the ground truth of the protocol."""


def build_scorable_rows(
    joined: JoinedAnswers,
    protocol: Protocol[Any, Any],
    *,
    mode: Mode = "strict",
    prompt: str = "paper",
    space: str | None = None,
) -> ScorableRows:
    """Parse the answers and combine each with its ground truth.

    An entry gives one row; for `trace` it gives one row per annotation row. Raise
    `InvalidValueError` if the protocol is about pairs and the answers are not, or vice versa.
    """
    if space is not None:
        parse_box_space(space, width=1, height=1)  # raises for an unknown name before any row
    rows: list[ScoredQuestion[Any, Any]] = []
    unanswered: list[str] = []
    without_truth: list[Rejected] = []
    for item, outcome in joined.pairs:
        if outcome is None:
            unanswered.append(item.name)
            continue
        entries = (item,) if isinstance(item, Entry) else item.shown
        if len(entries) != protocol.n_clips:
            name, about = protocol.instrument.protocol, protocol.subject
            raise InvalidValueError(
                f"{name} needs a {about}. Join the answers with subject={about!r}"
            )
        try:
            known = protocol.truths.of(entries, duration_us=entries[0].facts.duration_us)
            width, height = entries[0].facts.width, entries[0].facts.height
            if space == PIXEL and (not width or not height):
                raise InvalidValueError(
                    "no frame size declared. Add width and height columns, or read them from the file"
                )
            size = width or 1, height or 1
        except InvalidValueError as error:
            without_truth.append(Rejected(item.name, str(error)))
            continue
        read = partial(parse_answer_text, prompt=prompt, mode=mode, box_space=space, size=size)
        parsed = outcome if isinstance(outcome, Failure) else read(outcome.text, protocol)
        # Placeholder ids, because the files need not exist here.
        subject = build_question_subject(
            *(compute_placeholder_clip_id("entry", entry.name) for entry in entries)
        )
        origins = [entry.origin for entry in entries]
        rows.extend(
            ScoredQuestion(
                subject=subject,
                truth=truth,
                outcome=parsed,
                source=item.group,
                creator=get_first_creator(*origins),
                setting=get_first_creator_setting(*origins),
                difficulty=entries[0].difficulty,
            )
            for truth in known
        )
    return ScorableRows(
        rows=tuple(rows), not_asked=tuple(unanswered), without_truth=tuple(without_truth)
    )


def require_scorable_rows(
    scorable: ScorableRows,
    joined: JoinedAnswers,
    protocol: Protocol[Any, Any],
    *,
    answers: str,
    benchmark: str,
) -> None:
    """Check that there is a row to score; `answers` and `benchmark` name the sources for the error.

    Raise `UnreadableSourceError` if no answer fits the benchmark, or none of its rows can be used.
    """
    if scorable.rows:
        return
    if not joined.pairs:
        raise build_no_usable_entry_error(
            benchmark, joined.rejected, n_rejected=len(joined.rejected)
        )
    if scorable.without_truth:
        raise build_no_question_error(benchmark, protocol, scorable.without_truth)
    raise build_no_matching_answer_error(answers, joined.unknown, scorable.not_asked)
