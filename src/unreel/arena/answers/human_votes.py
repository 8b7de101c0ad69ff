"""Human votes of a season, and people as reviewers: each person, and the majority.

The truth of a season is the origin of each clip. People do not decide it, so their votes are
never scored against their own judgements.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from pydantic import Field, ValidationError

from unreel.annotation.campaign_state import CampaignRecords, iter_valid_judgements
from unreel.annotation.judgements import TraceAnswer, VoteAnswer
from unreel.annotation.publishing.publishable_campaign import assign_annotator_aliases
from unreel.arena.answers.answer_table import SAID_GENERATED, SAID_REAL, SILENT, SeasonAnswerTable
from unreel.benchmarks.entry import Entry
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.judgement import Label
from unreel.recipes.validation import RecipeSection, Text

if TYPE_CHECKING:
    from unreel.arena.season.folder import SeasonFolder

FILE: Final = "people.json"
PERSON: Final = "person: "
"""Prefix of each person's name, to distinguish people from models."""
MAJORITY: Final = "people: majority"
_MOST_BYTES: Final = 256 << 20
_SAID: Final = {Label.REAL: SAID_REAL, Label.GENERATED: SAID_GENERATED}


@dataclass(frozen=True, slots=True)
class HumanClipVote:
    """Vote of one person about one clip."""

    clip: str
    """Name of the clip in the season's clip set."""
    voter: str
    label: Label


class StoredSeasonVotes(RecipeSection):
    """The votes of people that are stored in a season's folder."""

    source: Text
    """Description of the source of the votes."""
    ballots: tuple[tuple[str, str, Label], ...] = Field(default=())
    """Clip, voter and label of each vote."""


def iter_benchmark_votes(entries: Iterable[Entry]) -> Iterator[HumanClipVote]:
    """Yield the votes of people that are stored in the benchmark's entries."""
    for entry in entries:
        for vote in entry.votes:
            yield HumanClipVote(entry.name, vote.voter, vote.label)


def read_campaign_votes(records: CampaignRecords, *, named: bool = False) -> list[HumanClipVote]:
    """Return the valid real-or-generated votes of a campaign; voters have aliases unless `named`.

    Votes that an annotator gave after seeing a machine's annotations are included; see the
    campaign's own report.
    """
    votes = [
        HumanClipVote(vote.task.names[0], vote.annotator, vote.value.label)
        for vote in iter_valid_judgements(records)
        if isinstance(vote.value, VoteAnswer | TraceAnswer) and vote.value.label is not None
    ]
    aliases = assign_annotator_aliases(
        sorted({ballot.voter for ballot in votes}), seed=0, named=named
    )
    return [HumanClipVote(vote.clip, aliases[vote.voter], vote.label) for vote in votes]


def write_season_votes(
    folder: "SeasonFolder", source: str, ballots: Sequence[HumanClipVote]
) -> None:
    """Store the votes of people in the season's folder; they replace votes stored earlier."""
    rows = [[vote.clip, vote.voter, vote.label.value] for vote in ballots]
    folder.place.put(FILE, json.dumps({"source": source, "ballots": rows}).encode())


def read_season_votes(folder: "SeasonFolder") -> tuple[str, tuple[HumanClipVote, ...]]:
    """Return the source of a season's human votes, and the votes; both are empty if none are stored.

    Raises:
        UnreadableSourceError: The file of votes is damaged.
    """
    try:
        stored = StoredSeasonVotes.model_validate_json(folder.place.read(FILE, most=_MOST_BYTES))
    except FileNotFoundError:
        return "", ()
    except (ValidationError, InvalidValueError) as error:
        remedy = "Run `unreel arena people` again"
        raise UnreadableSourceError(FILE, "no votes of people", remedy) from error
    return stored.source, tuple(HumanClipVote(*row) for row in stored.ballots)


def add_human_reviewers(
    play: SeasonAnswerTable, ballots: Iterable[HumanClipVote]
) -> SeasonAnswerTable:
    """Return the answer table `play` with each person, and the majority of people, added as reviewers.

    Only the majority is ranked: if each person were ranked too, people would count twice in the
    rate at which a creator is detected. Votes about clips outside the table are ignored. Of several
    votes of a person on a clip, the first counts.
    """
    index = {name: at for at, name in enumerate(play.lineup.clips)}
    answers: dict[str, dict[int, int]] = {}
    for ballot in ballots:
        if ballot.clip in index:
            votes = answers.setdefault(f"{PERSON}{ballot.voter}", {})
            votes.setdefault(index[ballot.clip], _SAID[ballot.label])
    if not answers:
        return play
    answers[MAJORITY] = _compute_majority_votes(answers.values())
    duplicates = answers.keys() & set(play.reviewers)
    if duplicates:
        msg = f"a reviewer of the season is called {min(duplicates)!a}. Give it another title"
        raise InvalidValueError(msg)
    return _append_human_answers(play, answers)


def _compute_majority_votes(people: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Return the majority vote of people on each clip, by clip index; `SILENT` for a tie."""
    tally: dict[int, Counter[int]] = {}
    for answers in people:
        for clip, says in answers.items():
            tally.setdefault(clip, Counter())[says] += 1
    majority = {}
    for clip, votes in tally.items():
        real, generated = votes[SAID_REAL], votes[SAID_GENERATED]
        louder = SAID_GENERATED if generated > real else SAID_REAL
        majority[clip] = SILENT if real == generated else louder
    return majority


def _append_human_answers(
    play: SeasonAnswerTable, people: Mapping[str, Mapping[int, int]]
) -> SeasonAnswerTable:
    reviewers = tuple(sorted({*play.reviewers, *people}))
    at = {name: number for number, name in enumerate(reviewers)}
    moved = np.array([at[name] for name in play.reviewers], dtype=np.int32)
    new = [(at[name], clip, says) for name, row in people.items() for clip, says in row.items()]
    who, clips, says = (np.array(column) for column in zip(*new, strict=True))
    return SeasonAnswerTable(
        lineup=play.lineup,
        condition=play.condition,
        reviewers=reviewers,
        floors=play.floors | (people.keys() - {MAJORITY}),
        reviewer=np.concatenate([moved[play.reviewer], who]).astype(np.int32),
        clip=np.concatenate([play.clip, clips]).astype(np.int32),
        said=np.concatenate([play.said, says]).astype(np.int8),
    )
