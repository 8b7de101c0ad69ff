"""Answers from a file, joined with the entries they are about."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from unreel.benchmarks import cells
from unreel.benchmarks.entry import Entry, Rejected, Row
from unreel.benchmarks.pairing import PairedEntries, find_pairs, pair_name
from unreel.benchmarks.tables import Cells, read_table
from unreel.core.answer import Reply
from unreel.core.errors import InvalidValueError, UnknownNameError, UnreadableSourceError
from unreel.core.failure import Failure, FailureReason
from unreel.protocols.protocol import Subject

NAME_COLUMNS: Final = ("name", "clip", "video", "video_id", "file")
PAIR_COLUMNS: Final = ("first", "second")
VOTER: Final = "voter"
"""The column that says who judged: a row is a vote then, and a clip may have several."""
Outcome = Reply | Failure


@dataclass(frozen=True, slots=True)
class Given:
    """One answer of the file: the name of its clip or pair, and what came back."""

    name: str
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Entries, or pairs of them, with their answers, and all that did not fit together."""

    pairs: tuple[tuple[Entry | PairedEntries, Outcome | None], ...]
    """Each in the benchmark's order; None where the file has no answer: it was not asked."""
    unknown: tuple[str, ...]
    """Names that the file answers and the benchmark does not have."""
    rejected: tuple[Rejected, ...]
    """Rows of the benchmark or of the file that could not be read."""

    @property
    def n_not_asked(self) -> int:
        """Entries or pairs without an answer."""
        return sum(outcome is None for _, outcome in self.pairs)

    def in_split(self, split: str | None) -> "Joined":
        """The entries of that split alone; all of them where none is named.

        Raises:
            UnknownNameError: No entry is in it.
        """
        if split is None:
            return self
        require_split({asked.split for asked, _ in self.pairs}, split)
        pairs = tuple(pair for pair in self.pairs if pair[0].split == split)
        return replace(self, pairs=pairs)


def require_split(known: Collection[str], split: str) -> None:
    """Refuse a split that no entry is in.

    Raises:
        UnknownNameError: It is none of the `known` ones.
    """
    if split not in known:
        kind = "split"
        raise UnknownNameError(kind, split, sorted(known))


def read_answers(path: Path) -> Iterator[Given | Rejected]:
    """The answers of `path`, a JSONL, CSV or Parquet file, in order.

    Each row names its clip under `name`, `clip`, `video`, `video_id` or `file`, or a pair in the order
    shown as `FIRST | SECOND` there or under `first` and `second`. It holds the raw answer under `text`,
    or under `failure` why there is none: a failure reason, or any words.
    """
    for number, row in enumerate(read_table(path), start=1):
        if isinstance(row, Rejected):
            yield row
            continue
        try:
            yield _given(row)
        except InvalidValueError as error:
            yield Rejected(f"row {number}", str(error))


def join_answers(
    rows: Iterable[Row], source: Path | Mapping[str, str | Failure], subject: Subject = "clip"
) -> Joined:
    """The entries of `rows` with the answers of a file, or those given, matched by name or location.

    Answers about pairs are matched with two entries each, in the order that they name.

    Raises:
        UnreadableSourceError: the file answers one clip twice, no row of it could be read, or pairs
            are asked for and it names none.
    """
    rejected: list[Rejected] = []
    if isinstance(source, Path):
        path, answers = source, _read_file(source, rejected)
    else:
        path = Path("answers")
        answers = {n: Reply(text=t) if isinstance(t, str) else t for n, t in source.items()}
    match = _match_pairs if subject == "pair" else _match_clips
    return match(rows, answers, path=path, rejected=rejected)


def _match_clips(
    rows: Iterable[Row], answers: Mapping[str, Outcome], *, path: Path, rejected: list[Rejected]
) -> Joined:
    pairs: list[tuple[Entry, Outcome | None]] = []
    used: set[str] = set()
    for row in rows:
        if isinstance(row, Rejected):
            rejected.append(row)
            continue
        keys = [key for key in dict.fromkeys((row.name, row.location)) if key in answers]
        if len(keys) > 1:
            problem = f"two answers about {row.name!r}, one under its location"
            raise UnreadableSourceError(str(path), problem, "Keep one answer for each clip")
        used.update(keys)
        pairs.append((row, answers[keys[0]] if keys else None))
    unknown = tuple(name for name in answers if name not in used)
    return Joined(pairs=tuple(pairs), unknown=unknown, rejected=tuple(rejected))


def _match_pairs(
    rows: Iterable[Row], answers: Mapping[str, Outcome], *, path: Path, rejected: list[Rejected]
) -> Joined:
    entries: list[Entry] = []
    for row in rows:
        if isinstance(row, Rejected):
            rejected.append(row)
        else:
            entries.append(row)
    found = find_pairs(entries, answers)
    if answers and len(found.unknown) == len(answers):
        problem = f"no row names two clips of the benchmark, the first names {found.unknown[0]!r}"
        remedy = (
            "Name both in the order shown, as 'FIRST | SECOND' or in the columns first and second"
        )
        raise UnreadableSourceError(str(path), problem, remedy)
    return Joined(
        pairs=tuple((pair, None if name is None else answers[name]) for pair, name in found.pairs),
        unknown=found.unknown,
        rejected=(*rejected, *found.rejected),
    )


def _read_file(path: Path, rejected: list[Rejected]) -> dict[str, Outcome]:
    answers: dict[str, Outcome] = {}
    for given in read_answers(path):
        if isinstance(given, Rejected):
            rejected.append(given)
        elif given.name in answers:
            problem = f"two answers about {given.name!r}"
            raise UnreadableSourceError(str(path), problem, "Keep one answer for each clip")
        else:
            answers[given.name] = given.outcome
    if rejected and not answers:
        problem = f"no readable answers, first {rejected[0]}"
        remedy = f"Write the columns text and one of {', '.join(NAME_COLUMNS)}"
        raise UnreadableSourceError(str(path), problem, remedy)
    return answers


def _given(row: Cells) -> Given:
    name = _name(row)
    failure = cells.text(row.get("failure"), "failure")
    answer = row.get("text")
    if failure and not cells.is_blank(answer):
        msg = f"{name} has a text and a failure. Keep the one that happened"
        raise InvalidValueError(msg)
    if failure:
        return Given(name, _failure(failure))
    if cells.is_blank(answer):
        return Given(name, Failure(FailureReason.EMPTY_REPLY, "the answers file holds no text"))
    cells.text(answer, "text")
    return Given(name, Reply(text=str(answer)))


def _name(row: Cells) -> str:
    if all(column in row for column in PAIR_COLUMNS):
        return pair_name(*(_named(row, column) for column in PAIR_COLUMNS))
    return clip_name(row)


def clip_name(row: Cells) -> str:
    """The name of the clip that `row` is about.

    Raises:
        InvalidValueError: It names none.
    """
    return _named(row, next((column for column in NAME_COLUMNS if column in row), None))


def _named(row: Cells, column: str | None) -> str:
    name = cells.text(row[column], column) if column else ""
    if not name:
        cells.refuse("the clip's name", name, f"Write it under one of {', '.join(NAME_COLUMNS)}")
    return name


def _failure(words: str) -> Failure:
    """The failure that `words` state: `reason: detail` as unreel prints it, or anything else."""
    reason, _, detail = words.partition(":")
    known = {reason.value for reason in FailureReason}
    if reason in known:
        return Failure(FailureReason(reason), detail.strip() or "as the answers file states")
    return Failure(FailureReason.UNSTATED, words)
