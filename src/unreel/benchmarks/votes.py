"""Scores of people's votes from a file: each voter, all votes, and the majority of each clip."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from unreel.benchmarks import cells
from unreel.benchmarks.entry import Entry, Rejected, collect_entries
from unreel.benchmarks.entry import Row as Record
from unreel.benchmarks.imported_answers import (
    NAME_COLUMNS,
    VOTER,
    parse_clip_name_cell,
    require_known_split,
)
from unreel.benchmarks.statistics import build_no_matching_answer_error
from unreel.benchmarks.table_entries import LABELS
from unreel.benchmarks.tables import read_table_rows
from unreel.core.clip import Origin
from unreel.core.content_ids import compute_placeholder_clip_id
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.estimate import Measured, Scorecard
from unreel.core.judgement import Label, Vote
from unreel.core.verdict import RealityVerdict, Unparsed, UnparsedReason
from unreel.protocols.protocol import ScoredQuestion
from unreel.protocols.reality import REALITY
from unreel.stats.agreement import krippendorff_alpha

_CODES = {Label.REAL: 0.0, Label.GENERATED: 1.0}

VoteRow = ScoredQuestion[Origin, RealityVerdict]
Ballot = tuple[Entry, tuple[Vote, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedVotes:
    """Clips with the votes about them, and the votes and rows that could not be used."""

    ballots: tuple[Ballot, ...]
    """Every entry in order, with its votes, possibly none."""
    unknown: tuple[str, ...]
    """Names in the votes that are not in the benchmark."""
    rejected: tuple[Rejected, ...]
    """Rows of the benchmark or of the votes that could not be read."""

    @property
    def not_asked(self) -> tuple[str, ...]:
        """Return the names of clips without a vote."""
        return tuple(entry.name for entry, votes in self.ballots if not votes)


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteScores:
    """Scores of people's votes in the metrics of `reality`: all votes, majorities and each voter."""

    votes: Scorecard
    """Scores with every vote counted once."""
    majority: Scorecard
    """Scores with every clip counted once, by the majority of its votes; a tie is an unreadable answer."""
    voters: Mapping[str, Scorecard]
    """Scores of each voter, by name."""
    agreement: Measured
    """Agreement of the voters beyond chance: Krippendorff's alpha, nominal."""


def join_votes_with_entries(
    rows: Iterable[Record], path: Path, *, split: str | None = None
) -> JoinedVotes:
    """Join the entries of `rows`, of one split or all, with the votes in the file `path`.

    Each vote has the name of its clip (in the same columns as an answer), its `voter`, and its
    `label`: real, generated or fake. Raise `UnreadableSourceError` if no row of the file is a vote
    about one of the entries, or `UnknownNameError` if no entry is in that split.
    """
    rejected: list[Rejected] = []
    entries = collect_entries(rows, rejected)
    if split is not None:
        require_known_split({entry.split for entry in entries}, split)
    names = {entry.location: entry.name for entry in entries} | {e.name: e.name for e in entries}
    by_clip: dict[str, dict[str, Vote]] = {}
    unknown: dict[str, None] = {}
    for name, vote in _read_votes(path, rejected):
        if name not in names:
            unknown[name] = None
        elif vote.voter in by_clip.setdefault(names[name], {}):
            reason = f"{vote.voter!r} votes a second time. Keep one vote of each person"
            rejected.append(Rejected(name, reason))
        else:
            by_clip[names[name]][vote.voter] = vote
    if not by_clip:
        raise build_no_matching_answer_error(
            str(path), tuple(unknown), [entry.name for entry in entries]
        )
    return JoinedVotes(
        ballots=tuple(
            (entry, tuple(by_clip.get(entry.name, {}).values()))
            for entry in entries
            if split in {None, entry.split}
        ),
        unknown=tuple(unknown),
        rejected=tuple(rejected),
    )


def score_votes(ballots: Sequence[Ballot], *, seed: int) -> VoteScores:
    """Return the metrics of all votes, of the majorities and of each voter, and voter agreement.

    Confidence intervals resample clips with all their votes, and clips of one scene together. The
    intervals of all votes also resample voters, if there are enough.
    """
    voted = [(entry, votes) for entry, votes in ballots if votes]
    by_voter: dict[str, list[VoteRow]] = {}
    rows: list[VoteRow] = []
    for entry, votes in voted:
        for vote in votes:
            row = _build_scored_vote(entry, vote.label)
            by_voter.setdefault(vote.voter, []).append(replace(row, difficulty=""))
            # Voters are resampled like creators, because other voters would judge differently.
            rows.append(replace(row, creator=f"voter {vote.voter}"))
    majority = []
    # Krippendorff's alpha over clips; voters are interchangeable (row n: vote n of each clip).
    n_votes = max((len(votes) for _, votes in voted), default=0)
    ratings = np.full((n_votes, len(voted)), np.nan)
    for clip, (entry, votes) in enumerate(voted):
        ratings[: len(votes), clip] = [_CODES[vote.label] for vote in votes]
        (label, n), *others = Counter(vote.label for vote in votes).most_common()
        winner: Label | Unparsed = label
        if others and others[0][1] == n:
            text = f"{n} of {len(votes)} votes say {label.value}"
            winner = Unparsed(UnparsedReason.AMBIGUOUS, text)
        majority.append(_build_scored_vote(entry, winner))
    return VoteScores(
        votes=REALITY.score(rows, seed=seed),
        majority=REALITY.score(majority, seed=seed),
        voters={name: REALITY.score(by_voter[name], seed=seed) for name in sorted(by_voter)},
        agreement=krippendorff_alpha(ratings, scale="nominal", seed=seed),
    )


def _build_scored_vote(entry: Entry, label: Label | Unparsed) -> VoteRow:
    return ScoredQuestion(
        subject=compute_placeholder_clip_id("entry", entry.name),
        truth=entry.origin,
        outcome=RealityVerdict(label=label),
        source=entry.group,
        difficulty=entry.difficulty,
    )


def _read_votes(path: Path, rejected: list[Rejected]) -> Iterator[tuple[str, Vote]]:
    """Yield clip name and vote; append bad rows to `rejected`; raise `UnreadableSourceError` if all are."""
    damaged: list[Rejected] = []
    n_votes = 0
    for number, row in enumerate(read_table_rows(path), start=1):
        if isinstance(row, Rejected):
            damaged.append(row)
            continue
        try:
            voter = cells.parse_text_cell(row.get(VOTER), VOTER)
            if not voter:
                cells.raise_invalid_cell(VOTER, voter, "Write who voted")
            label = cells.parse_text_cell(row.get("label"), "label").lower()
            if label not in LABELS:
                cells.raise_invalid_cell("label", label, "Write real, generated or fake")
            named = parse_clip_name_cell(row), Vote(voter, LABELS[label])
        except InvalidValueError as error:
            damaged.append(Rejected(f"row {number}", str(error)))
            continue
        n_votes += 1
        yield named
    if not n_votes:
        raise UnreadableSourceError(
            str(path),
            f"no readable votes, first {damaged[0]}" if damaged else "no votes",
            f"Write the columns voter, label and one of {', '.join(NAME_COLUMNS)}",
        )
    rejected.extend(damaged)
