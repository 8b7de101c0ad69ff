"""Answers of a season, read from its runs; no question is sent."""

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from unreel.arena.answers.lineup import read_lineup
from unreel.arena.answers.people import add_people, read_people
from unreel.arena.answers.play import SAID_GENERATED, SAID_REAL, SILENT, AnswerTable, SeasonClips
from unreel.arena.season.folder import EnteredReviewer, SeasonFolder
from unreel.benchmarks.questions import PlannedQuestion
from unreel.core.clip import Clip
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.settings import EnvironmentSettings, read_settings
from unreel.core.verdict import RealityVerdict, TraceVerdict, Verdict
from unreel.engine.location import StorageLocation
from unreel.engine.resolve_location import open_access
from unreel.evaluation.run_job import NEVER_PUT, EvalRun, open_run
from unreel.evaluation.stored_answers import iter_questions_with_answers, read_answer
from unreel.evaluation.stored_recipe import find_recipe

_SAID: Final = {Label.REAL: SAID_REAL, Label.GENERATED: SAID_GENERATED}


class SeasonAnswer(NamedTuple):
    """One stored answer."""

    planned: PlannedQuestion[Clip]
    """The question."""
    row: Mapping[str, Any]
    """As the table of answers holds it."""
    read: Verdict | Failure
    """What it says."""


def open_season_folder(path: Path | str | SeasonFolder) -> SeasonFolder:
    """Open the working directory of a season by its path."""
    return path if isinstance(path, SeasonFolder) else SeasonFolder(StorageLocation(str(path)))


def read_play(
    path: Path | str | SeasonFolder,
    condition: str | None = None,
    *,
    lineup: SeasonClips | None = None,
    people: bool = False,
) -> AnswerTable:
    """Return all answers of a season under one condition; by default the first.

    Removed reviewers are included. Clips of removed creators are included only with a `lineup` that
    contains them (see `read_lineup`), because later reviewers never met them. With `people`, voters
    of the season are reviewers too: see `arena.people`.

    Raises:
        UnreelError: There are no answers, the condition is unknown, or the answers are about pairs.
    """
    folder = open_season_folder(path)
    entrants, settings = folder.require_played(), read_settings()
    condition = entrants.conditions[0] if condition is None else condition
    entrants.require_condition(condition)
    if entrants.is_about_pairs:
        setting, problem = (
            "protocol",
            f"answers to {entrants.protocol} are about pairs, not about one clip",
        )
        raise InvalidSettingError(setting, problem, "Rank them by who is preferred")
    lineup = lineup or read_lineup(folder)
    place = {name: number for number, name in enumerate(lineup.clips)}
    shown = entrants.shown(entrants.reviewers)
    names = tuple(sorted(shown[each.name] for each in entrants.heard))
    columns = array("i"), array("i"), array("b")
    for each in entrants.heard:
        reviewer = names.index(shown[each.name])
        for planned, _, read in read_answers(folder, each, condition, settings):
            if (clip := place.get(planned.name)) is not None:
                columns[0].append(reviewer)
                columns[1].append(clip)
                columns[2].append(encode_label(read))
    play = AnswerTable(
        lineup=lineup,
        condition=condition,
        reviewers=names,
        floors=frozenset(shown[each.name] for each in entrants.heard if each.floor),
        reviewer=np.array(columns[0], dtype=np.int32),
        clip=np.array(columns[1], dtype=np.int32),
        said=np.array(columns[2], dtype=np.int8),
    )
    return add_people(play, read_people(folder)[1]) if people else play


def read_answers(
    folder: SeasonFolder, reviewer: EnteredReviewer, condition: str, settings: EnvironmentSettings
) -> Iterator[SeasonAnswer]:
    """Yield the answers of a reviewer under a condition; questions never sent are skipped."""
    run = _find_reviewer_run(folder, reviewer, condition, settings)
    if run is None:
        return
    for planned, row in iter_questions_with_answers(run):
        if isinstance(planned, PlannedQuestion) and row and row["failure_reason"] not in NEVER_PUT:
            yield SeasonAnswer(
                planned, row, read_answer(planned, row, mode=run.recipe.reviewer.parser)
            )


def _find_reviewer_run(
    folder: SeasonFolder, reviewer: EnteredReviewer, condition: str, settings: EnvironmentSettings
) -> EvalRun | None:
    """Open the run with a reviewer's answers, limited to one condition.

    Return `None` if the reviewer was never asked under that condition.
    """
    place = folder.run(reviewer.folder)
    if find_recipe(place) is None:
        return None
    run = open_run(
        place, open_access(settings), ledgers=place.path, moved_to=folder.set, accept_changed=True
    )
    wanted = reviewer.conditions.get(condition)
    kept = tuple(each for each in run.recipe.condition if str(each.as_condition()) == wanted)
    recipe = run.recipe.model_copy(update={"condition": kept})
    return replace(run, recipe=recipe) if kept else None


def encode_label(read: Verdict | Failure) -> int:
    """Return the label of an answer: real, generated or none."""
    if isinstance(read, RealityVerdict | TraceVerdict) and isinstance(read.label, Label):
        return _SAID[read.label]
    return SILENT
