"""Answers from a file, joined with the entries they are about."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from unreel.benchmarks.entry import Entry, Rejected, Row
from unreel.benchmarks.given import FORM, Outcome, read_answers
from unreel.benchmarks.nothing import no_such_split
from unreel.benchmarks.pairing import PairedEntries, find_pairs
from unreel.core.answer import Reply
from unreel.core.errors import UnreadableSourceError
from unreel.core.failure import Failure
from unreel.protocols.protocol import Subject

VOTER: Final = "voter"
"""The column that says who judged: a row is a vote then, and a clip may have several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedAnswers:
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

    def in_split(self, split: str | None) -> "JoinedAnswers":
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
        InvalidSettingError: There is no split at all.
    """
    if split not in known:
        raise no_such_split(split, known)


def join_answers(
    rows: Iterable[Row],
    source: Path | Mapping[str, str | Failure],
    subject: Subject = "clip",
    *,
    protocol: str | None = None,
) -> JoinedAnswers:
    """The entries of `rows` with the answers of a file, or those given.

    They are matched by name or location, or by the file's name where one clip alone has it. Answers about
    pairs are matched with two entries each, in the order that they name. Rows that name another instrument
    than `protocol` are passed over.

    Raises:
        UnreadableSourceError: the file answers one clip twice, no row of it could be read, or pairs
            are asked for and it names none.
    """
    rejected: list[Rejected] = []
    if isinstance(source, Path):
        path, answers = source, _read_file(source, rejected, protocol)
    else:
        path = Path("answers")
        answers = {n: Reply(text=t) if isinstance(t, str) else t for n, t in source.items()}
    match = _match_pairs if subject == "pair" else _match_clips
    return match(rows, answers, path=path, rejected=rejected)


def _match_clips(
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
            problem = f"two answers about {row.name!r}, one under its location"
            raise UnreadableSourceError(str(path), problem, "Keep one answer for each clip")
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


def _match_pairs(
    rows: Iterable[Row], answers: Mapping[str, Outcome], *, path: Path, rejected: list[Rejected]
) -> JoinedAnswers:
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
    return JoinedAnswers(
        pairs=tuple((pair, None if name is None else answers[name]) for pair, name in found.pairs),
        unknown=found.unknown,
        rejected=(*rejected, *found.rejected),
    )


def _read_file(path: Path, rejected: list[Rejected], protocol: str | None) -> dict[str, Outcome]:
    answers: dict[str, Outcome] = {}
    for_this: dict[str, Outcome] = {}
    for given in read_answers(path):
        if isinstance(given, Rejected):
            rejected.append(given)
            continue
        if not given.name:
            why = "it names a question and no clip. Add the clip's name"
            rejected.append(Rejected(given.key, why))
            continue
        if protocol is not None and given.protocol not in {"", protocol}:
            continue
        known = for_this if given.protocol else answers
        if given.name in known:
            problem = f"two answers about {given.name!r}"
            raise UnreadableSourceError(str(path), problem, "Keep one answer for each clip")
        known[given.name] = given.outcome
    if rejected and not (answers or for_this):
        problem = f"no readable answers, first {rejected[0]}"
        raise UnreadableSourceError(str(path), problem, FORM)
    return answers | for_this
