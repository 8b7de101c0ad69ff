"""Clips of a season as columns: creator, scene, and other properties that may bias reviewers."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from unreel.arena.answers.play import NOBODY, Floats, Indices, SeasonClips
from unreel.arena.season.benchmark import look_table, open_set, read_controls, read_current_names
from unreel.arena.season.folder import SeasonFolder
from unreel.benchmarks.entry import Entry
from unreel.core.clip import Clip, get_maker
from unreel.core.failure import Failure
from unreel.engine.survey import ClipSurvey

NUISANCES: Final = ("length", "resolution", "sound")
"""Logarithms of seconds and of pixels, and whether it can be heard."""


def read_lineup(folder: SeasonFolder, *, retired: bool = False) -> SeasonClips:
    """Read the clips of the season's benchmark, sorted by name.

    Clips of removed creators are included only if `retired` is true.

    Raises:
        UnreelError: The season has not been played.
    """
    current = read_current_names(folder, folder.require_played())
    benchmark, controls = open_set(folder), read_controls(folder)
    rows = (row for row in benchmark if isinstance(row, Entry))
    entries = [row for row in rows if retired or row.name in current]
    found = list(ClipSurvey(look_table(folder)).find(benchmark, entries))
    found.sort(key=lambda pair: pair[0].name)
    entries = [entry for entry, _ in found]
    makers = [get_maker(entry.origin) for entry in entries]
    changed = [controls.get(entry.name, "") for entry in entries]
    shown = [entry.group or entry.name for entry in entries]
    names = [tuple(sorted({*each} - {""})) for each in (makers, shown, changed)]
    return SeasonClips(
        clips=tuple(entry.name for entry in entries),
        creators=names[0],
        scenes=names[1],
        creator=find_indices(names[0], makers),
        scene=find_indices(names[1], shown),
        control=find_indices(names[2], changed),
        controls=names[2],
        nuisances=NUISANCES,
        nuisance=_build_nuisance_table([clip for _, clip in found]),
    )


def find_indices(names: Sequence[str], each: Sequence[str]) -> Indices:
    """Return the index of each name in `names`; -1 if it is missing."""
    place = {name: number for number, name in enumerate(names)}
    return np.array([place.get(name, NOBODY) for name in each], dtype=np.int32)


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
