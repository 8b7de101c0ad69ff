"""Answer table of a season: clips, answers of runs, and votes of people; no question is sent."""

import json
import math
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field, ValidationError

from unreel.annotation.campaign import TraceAnswer, VoteAnswer
from unreel.annotation.campaign_state import CampaignRecords, iter_valid_judgements
from unreel.annotation.publishing.publishable_campaign import assign_annotator_aliases
from unreel.arena.answers.answer_table import (
    ANSWERED_GENERATED,
    ANSWERED_REAL,
    NOBODY,
    SILENT,
    Indices,
    SeasonAnswerTable,
    SeasonClips,
)
from unreel.arena.season.folder import EnteredReviewer, SeasonFolder
from unreel.arena.season.scenes import (
    open_season_clip_facts_table,
    open_season_clip_set,
    read_clip_controls,
    read_current_clip_names,
)
from unreel.benchmarks.entry import Entry
from unreel.benchmarks.questions import PlannedQuestion
from unreel.core.clip import Clip, format_creator_with_setting
from unreel.core.errors import InvalidSettingError, InvalidValueError, UnreadableSourceError
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.settings import EnvironmentSettings, read_environment_settings
from unreel.core.verdict import LocateVerdict, RealityVerdict, TraceVerdict, Verdict
from unreel.engine.clip_facts import StoredClipFacts
from unreel.engine.location import StorageLocation
from unreel.engine.storage_access import build_clip_access_settings
from unreel.evaluation.run_job import NOT_SENT, open_run
from unreel.evaluation.scoring import iter_questions_with_answers, parse_stored_answer
from unreel.evaluation.stored_recipe import find_run_recipe
from unreel.recipes.validation import RecipeSection, Text


def exclude_creators(answers: SeasonAnswerTable, creators: Collection[str]) -> SeasonAnswerTable:
    """Return the answer table without the clips of these creators; all other answers stay the same."""
    table = answers.clips
    is_included = np.array([name not in creators for name in table.creators], dtype=np.bool_)
    mask = np.ones(len(table.names), dtype=np.bool_)
    generated = table.creator != NOBODY
    mask[generated] = is_included[table.creator[generated]]
    rows = mask[answers.clip]
    # The index of each element after the others are removed; NOBODY is the last index.
    creator_index = np.append(np.cumsum(is_included) - 1, NOBODY).astype(np.int32)
    clip_index = (np.cumsum(mask) - 1).astype(np.int32)
    clips = replace(
        table,
        names=tuple(name for name, keep in zip(table.names, mask, strict=True) if keep),
        creators=tuple(
            name for name, keep in zip(table.creators, is_included, strict=True) if keep
        ),
        creator=creator_index[table.creator[mask]],
        scene=table.scene[mask],
        control=table.control[mask],
        nuisance=table.nuisance[mask],
    )
    return replace(
        answers,
        clips=clips,
        reviewer=answers.reviewer[rows],
        clip=clip_index[answers.clip[rows]],
        answer_codes=answers.answer_codes[rows],
    )


NUISANCES = ("length", "resolution", "sound")
"""Properties of a clip: logarithm of seconds, logarithm of pixels, and whether it has sound."""


def read_season_clips(folder: SeasonFolder, *, retired: bool = False) -> SeasonClips:
    """Read the clips of the season in `folder`, sorted by name.

    Clips of removed creators are included only if `retired` is true.
    """
    current = read_current_clip_names(folder, folder.require_played())
    benchmark, controls = open_season_clip_set(folder), read_clip_controls(folder)
    rows = (row for row in benchmark if isinstance(row, Entry))
    entries = [row for row in rows if retired or row.name in current]
    pairs = list(StoredClipFacts(open_season_clip_facts_table(folder)).find(benchmark, entries))
    pairs.sort(key=lambda pair: pair[0].name)
    entries = [entry for entry, _ in pairs]
    creators = [format_creator_with_setting(entry.origin) for entry in entries]
    changed = [controls.get(entry.name, "") for entry in entries]
    scenes = [entry.group or entry.name for entry in entries]
    names = [tuple(sorted({*column} - {""})) for column in (creators, scenes, changed)]
    nuisances = []
    for _, clip in pairs:
        if isinstance(clip, Failure):
            nuisances.append([math.nan] * len(NUISANCES))
        else:
            seconds = max(float(clip.facts.video.duration_s), 0.001)
            pixels = math.prod(clip.size)
            nuisances.append([math.log(seconds), math.log(pixels), float(bool(clip.facts.audio))])
    return SeasonClips(
        names=tuple(entry.name for entry in entries),
        creators=names[0],
        scenes=names[1],
        creator=find_name_indices(names[0], creators),
        scene=find_name_indices(names[1], scenes),
        control=find_name_indices(names[2], changed),
        controls=names[2],
        nuisances=NUISANCES,
        nuisance=np.array(nuisances, dtype=np.float64).reshape(len(pairs), len(NUISANCES)),
    )


def find_name_indices(names: Sequence[str], values: Sequence[str]) -> Indices:
    """Return the index in `names` of each name in `values`; -1 if it is missing."""
    index = {name: number for number, name in enumerate(names)}
    return np.array([index.get(name, NOBODY) for name in values], dtype=np.int32)


_ANSWER_CODES = {Label.REAL: ANSWERED_REAL, Label.GENERATED: ANSWERED_GENERATED}


def open_season_folder(path: Path | str | SeasonFolder) -> SeasonFolder:
    """Return the season folder at `path`; a `SeasonFolder` is returned unchanged."""
    return path if isinstance(path, SeasonFolder) else SeasonFolder(StorageLocation(str(path)))


def read_season_answers(
    path: Path | str | SeasonFolder,
    condition: str | None = None,
    *,
    clips: SeasonClips | None = None,
    people: bool = False,
) -> SeasonAnswerTable:
    """Return all answers of a season under one condition, by default the first condition.

    Removed reviewers are included. Clips of removed creators are included only with a `clips` that
    contains them (see `read_season_clips`), because later reviewers were not asked about them. With
    `people`, voters of the season are reviewers too: see `arena.answers.human_votes`.
    """
    folder = open_season_folder(path)
    entrants, settings = folder.require_played(), read_environment_settings()
    condition = entrants.conditions[0] if condition is None else condition
    entrants.require_condition(condition)
    if entrants.is_about_pairs:
        raise InvalidSettingError(
            "protocol",
            f"answers to {entrants.protocol} are about pairs, not about one clip",
            "Rank them by who is preferred",
        )
    clips = clips or read_season_clips(folder)
    index = {name: number for number, name in enumerate(clips.names)}
    titles = entrants.shown(entrants.reviewers)
    names = tuple(sorted(titles[judge.name] for judge in entrants.fitted_reviewers))
    columns = array("i"), array("i"), array("b")
    for judge in entrants.fitted_reviewers:
        reviewer = names.index(titles[judge.name])
        for planned, _, read in read_reviewer_answers(folder, judge, condition, settings):
            if (clip := index.get(planned.name)) is not None:
                columns[0].append(reviewer)
                columns[1].append(clip)
                columns[2].append(encode_answer_label(read))
    answers = SeasonAnswerTable(
        clips=clips,
        condition=condition,
        reviewers=names,
        floors=frozenset(titles[judge.name] for judge in entrants.fitted_reviewers if judge.floor),
        reviewer=np.array(columns[0], dtype=np.int32),
        clip=np.array(columns[1], dtype=np.int32),
        answer_codes=np.array(columns[2], dtype=np.int8),
    )
    return add_human_reviewers(answers, read_season_votes(folder)[1]) if people else answers


def read_reviewer_answers(
    folder: SeasonFolder, reviewer: EnteredReviewer, condition: str, settings: EnvironmentSettings
) -> Iterator[tuple[PlannedQuestion[Clip], Mapping[str, Any], Verdict | Failure]]:
    """Yield each question of a reviewer under one condition with its stored row and verdict.

    Questions that were never sent are skipped.
    """
    location = folder.run(reviewer.folder)
    if find_run_recipe(location) is None:
        return
    run = open_run(
        location,
        build_clip_access_settings(settings),
        ledgers=location.path,
        moved_to=folder.set,
        accept_changed=True,
    )
    stored = reviewer.conditions.get(condition)
    sections = tuple(s for s in run.recipe.condition if str(s.as_condition()) == stored)
    if not sections:
        return
    run = replace(run, recipe=run.recipe.model_copy(update={"condition": sections}))
    for planned, row in iter_questions_with_answers(run):
        if isinstance(planned, PlannedQuestion) and row and row["failure_reason"] not in NOT_SENT:
            verdict = parse_stored_answer(planned, row, mode=run.recipe.reviewer.parser)
            yield planned, row, verdict


def encode_answer_label(read: Verdict | Failure) -> int:
    """Return the label of a parsed answer as a code: `ANSWERED_REAL`, `ANSWERED_GENERATED` or `SILENT`."""
    if isinstance(read, RealityVerdict | TraceVerdict | LocateVerdict) and isinstance(
        read.label, Label
    ):
        return _ANSWER_CODES[read.label]
    return SILENT


FILE = "people.json"
PERSON = "person: "
"""Prefix of each person's name, to distinguish people from models."""
MAJORITY = "people: majority"
_MAX_BYTES = 256 << 20


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


def write_season_votes(folder: "SeasonFolder", source: str, votes: Sequence[HumanClipVote]) -> None:
    """Store the votes of people in the season's folder; they replace votes stored earlier."""
    rows = [[vote.clip, vote.voter, vote.label.value] for vote in votes]
    folder.place.put(FILE, json.dumps({"source": source, "ballots": rows}).encode())


def read_season_votes(folder: "SeasonFolder") -> tuple[str, tuple[HumanClipVote, ...]]:
    """Return the source of a season's human votes, and the votes; both are empty if none are stored."""
    try:
        stored = StoredSeasonVotes.model_validate_json(folder.place.read(FILE, most=_MAX_BYTES))
    except FileNotFoundError:
        return "", ()
    except (ValidationError, InvalidValueError) as error:
        raise UnreadableSourceError(
            FILE, "no votes of people", "Run `unreel arena people` again"
        ) from error
    return stored.source, tuple(HumanClipVote(*row) for row in stored.ballots)


def add_human_reviewers(
    table: SeasonAnswerTable, votes: Iterable[HumanClipVote]
) -> SeasonAnswerTable:
    """Return the answer table with each person, and the majority of people, added as reviewers.

    Only the majority is ranked: if each person were ranked too, people would count twice in the
    rate at which a creator is detected. Votes about clips outside the table are ignored. Of several
    votes of a person on a clip, the first counts.
    """
    index = {name: at for at, name in enumerate(table.clips.names)}
    people: dict[str, dict[int, int]] = {}
    for vote in votes:
        if vote.clip in index:
            answers = people.setdefault(f"{PERSON}{vote.voter}", {})
            answers.setdefault(index[vote.clip], _ANSWER_CODES[vote.label])
    if not people:
        return table
    margin: Counter[int] = Counter()
    for answers in people.values():
        for clip, label in answers.items():
            margin[clip] += 1 if label == ANSWERED_GENERATED else -1
    people[MAJORITY] = {
        clip: SILENT if not n else ANSWERED_GENERATED if n > 0 else ANSWERED_REAL
        for clip, n in margin.items()
    }
    duplicates = people.keys() & set(table.reviewers)
    if duplicates:
        raise InvalidValueError(
            f"a reviewer of the season is called {min(duplicates)!a}. Give it another title"
        )
    reviewers = tuple(sorted({*table.reviewers, *people}))
    at = {name: number for number, name in enumerate(reviewers)}
    moved = np.array([at[name] for name in table.reviewers], dtype=np.int32)
    rows = [(at[name], clip, code) for name, row in people.items() for clip, code in row.items()]
    reviewer, clips, answer_codes = (np.array(column) for column in zip(*rows, strict=True))
    return SeasonAnswerTable(
        clips=table.clips,
        condition=table.condition,
        reviewers=reviewers,
        floors=table.floors | (people.keys() - {MAJORITY}),
        reviewer=np.concatenate([moved[table.reviewer], reviewer]).astype(np.int32),
        clip=np.concatenate([table.clip, clips]).astype(np.int32),
        answer_codes=np.concatenate([table.answer_codes, answer_codes]).astype(np.int8),
    )
