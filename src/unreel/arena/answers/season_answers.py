"""Clips and answers of a season, read from its folder and runs; no question is sent."""

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from unreel.arena.answers.answer_table import (
    NOBODY,
    SAID_GENERATED,
    SAID_REAL,
    SILENT,
    Floats,
    Indices,
    SeasonAnswerTable,
    SeasonClips,
)
from unreel.arena.answers.human_votes import add_human_reviewers, read_season_votes
from unreel.arena.season.clip_set import (
    open_season_clip_facts_table,
    open_season_clip_set,
    read_clip_controls,
    read_current_clip_names,
)
from unreel.arena.season.folder import EnteredReviewer, SeasonFolder
from unreel.benchmarks.entry import Entry
from unreel.benchmarks.questions import PlannedQuestion
from unreel.core.clip import Clip, format_creator_with_setting
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.settings import EnvironmentSettings, read_environment_settings
from unreel.core.verdict import LocateVerdict, RealityVerdict, TraceVerdict, Verdict
from unreel.engine.clip_facts import StoredClipFacts
from unreel.engine.location import StorageLocation
from unreel.engine.storage_access import build_clip_access_settings
from unreel.evaluation.run_job import NEVER_PUT, EvalRun, open_run
from unreel.evaluation.scoring import iter_questions_with_answers, parse_stored_answer
from unreel.evaluation.stored_recipe import find_run_recipe

NUISANCES: Final = ("length", "resolution", "sound")
"""Properties of a clip: logarithm of seconds, logarithm of pixels, and whether it has sound."""


def read_season_clips(folder: SeasonFolder, *, retired: bool = False) -> SeasonClips:
    """Read the clips of the season in `folder`, sorted by name.

    Clips of removed creators are included only if `retired` is true.

    Raises:
        UnreelError: The season has not been run.
    """
    current = read_current_clip_names(folder, folder.require_played())
    benchmark, controls = open_season_clip_set(folder), read_clip_controls(folder)
    rows = (row for row in benchmark if isinstance(row, Entry))
    entries = [row for row in rows if retired or row.name in current]
    pairs = list(StoredClipFacts(open_season_clip_facts_table(folder)).find(benchmark, entries))
    pairs.sort(key=lambda pair: pair[0].name)
    entries = [entry for entry, _ in pairs]
    makers = [format_creator_with_setting(entry.origin) for entry in entries]
    changed = [controls.get(entry.name, "") for entry in entries]
    scenes = [entry.group or entry.name for entry in entries]
    names = [tuple(sorted({*column} - {""})) for column in (makers, scenes, changed)]
    return SeasonClips(
        clips=tuple(entry.name for entry in entries),
        creators=names[0],
        scenes=names[1],
        creator=find_name_indices(names[0], makers),
        scene=find_name_indices(names[1], scenes),
        control=find_name_indices(names[2], changed),
        controls=names[2],
        nuisances=NUISANCES,
        nuisance=_build_nuisance_table([clip for _, clip in pairs]),
    )


def find_name_indices(names: Sequence[str], values: Sequence[str]) -> Indices:
    """Return the index in `names` of each name in `values`; -1 if it is missing."""
    index = {name: number for number, name in enumerate(names)}
    return np.array([index.get(name, NOBODY) for name in values], dtype=np.int32)


def _build_nuisance_table(clips: list[Clip | Failure]) -> Floats:
    rows = [
        [math.nan] * len(NUISANCES) if isinstance(c, Failure) else _compute_nuisance_values(c)
        for c in clips
    ]
    return np.array(rows, dtype=np.float64).reshape(len(clips), len(NUISANCES))


def _compute_nuisance_values(clip: Clip) -> list[float]:
    width, height = clip.size
    seconds = max(float(clip.facts.video.duration_s), 0.001)
    return [math.log(seconds), math.log(width * height), float(bool(clip.facts.audio))]


_SAID: Final = {Label.REAL: SAID_REAL, Label.GENERATED: SAID_GENERATED}


class SeasonAnswer(NamedTuple):
    """One stored answer of a reviewer: the question, the stored row, and the parsed verdict."""

    planned: PlannedQuestion[Clip]
    row: Mapping[str, Any]
    """Row of the answers table."""
    read: Verdict | Failure
    """Parsed verdict, or the reason why there is none."""


def open_season_folder(path: Path | str | SeasonFolder) -> SeasonFolder:
    """Return the season folder at `path`; a `SeasonFolder` is returned unchanged."""
    return path if isinstance(path, SeasonFolder) else SeasonFolder(StorageLocation(str(path)))


def read_season_answers(
    path: Path | str | SeasonFolder,
    condition: str | None = None,
    *,
    lineup: SeasonClips | None = None,
    people: bool = False,
) -> SeasonAnswerTable:
    """Return all answers of a season under one condition, by default the first condition.

    Removed reviewers are included. Clips of removed creators are included only with a `lineup` that
    contains them (see `read_season_clips`), because later reviewers were not asked about them. With
    `people`, voters of the season are reviewers too: see `arena.answers.human_votes`.

    Raises:
        UnreelError: There are no answers, the condition is unknown, or the answers are about pairs.
    """
    folder = open_season_folder(path)
    entrants, settings = folder.require_played(), read_environment_settings()
    condition = entrants.conditions[0] if condition is None else condition
    entrants.require_condition(condition)
    if entrants.is_about_pairs:
        setting, problem = (
            "protocol",
            f"answers to {entrants.protocol} are about pairs, not about one clip",
        )
        raise InvalidSettingError(setting, problem, "Rank them by who is preferred")
    lineup = lineup or read_season_clips(folder)
    index = {name: number for number, name in enumerate(lineup.clips)}
    titles = entrants.shown(entrants.reviewers)
    names = tuple(sorted(titles[judge.name] for judge in entrants.heard))
    columns = array("i"), array("i"), array("b")
    for judge in entrants.heard:
        reviewer = names.index(titles[judge.name])
        for planned, _, read in read_reviewer_answers(folder, judge, condition, settings):
            if (clip := index.get(planned.name)) is not None:
                columns[0].append(reviewer)
                columns[1].append(clip)
                columns[2].append(encode_answer_label(read))
    play = SeasonAnswerTable(
        lineup=lineup,
        condition=condition,
        reviewers=names,
        floors=frozenset(titles[judge.name] for judge in entrants.heard if judge.floor),
        reviewer=np.array(columns[0], dtype=np.int32),
        clip=np.array(columns[1], dtype=np.int32),
        said=np.array(columns[2], dtype=np.int8),
    )
    return add_human_reviewers(play, read_season_votes(folder)[1]) if people else play


def read_reviewer_answers(
    folder: SeasonFolder, reviewer: EnteredReviewer, condition: str, settings: EnvironmentSettings
) -> Iterator[SeasonAnswer]:
    """Yield the stored answers of a reviewer under one condition; questions never sent are skipped."""
    run = _open_reviewer_run(folder, reviewer, condition, settings)
    if run is None:
        return
    for planned, row in iter_questions_with_answers(run):
        if isinstance(planned, PlannedQuestion) and row and row["failure_reason"] not in NEVER_PUT:
            yield SeasonAnswer(
                planned, row, parse_stored_answer(planned, row, mode=run.recipe.reviewer.parser)
            )


def _open_reviewer_run(
    folder: SeasonFolder, reviewer: EnteredReviewer, condition: str, settings: EnvironmentSettings
) -> EvalRun | None:
    """Open a reviewer's run, limited to one condition; `None` if it was never asked under that."""
    location = folder.run(reviewer.folder)
    if find_run_recipe(location) is None:
        return None
    run = open_run(
        location,
        build_clip_access_settings(settings),
        ledgers=location.path,
        moved_to=folder.set,
        accept_changed=True,
    )
    stored = reviewer.conditions.get(condition)
    sections = tuple(s for s in run.recipe.condition if str(s.as_condition()) == stored)
    recipe = run.recipe.model_copy(update={"condition": sections})
    return replace(run, recipe=recipe) if sections else None


def encode_answer_label(read: Verdict | Failure) -> int:
    """Return the label of a parsed answer as a code: `SAID_REAL`, `SAID_GENERATED` or `SILENT`."""
    if isinstance(read, RealityVerdict | TraceVerdict | LocateVerdict) and isinstance(
        read.label, Label
    ):
        return _SAID[read.label]
    return SILENT
