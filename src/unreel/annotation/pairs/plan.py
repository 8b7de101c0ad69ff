"""Choose pairs to compare: VideoRealBench's strict pairs, or those with the highest information gain.

VideoRealBench takes 30 clips, scored 1 to 5 by 3, 7, 10, 6 and 4 of them, and has people compare all pairs
of different scores: 435 pairs less 90 ties are 345.
"""

import csv
import io
import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np

from unreel.core.errors import InvalidSettingError, InvalidValueError, UnreadableSourceError
from unreel.core.output_files import OutputDirectory
from unreel.core.sheet import csv_text
from unreel.core.small_documents import read_bytes
from unreel.stats.pair_choice import MOST, StrengthPosterior, choose_pairs, estimate_posterior

VRB_CLIPS: Final = {1: 3, 2: 7, 3: 10, 4: 6, 5: 4}
"""Clips of each score among VideoRealBench's 30."""
NamePair = tuple[str, str]
"""Two clips' names in alphabetical order: which side they are shown on is the campaign's choice."""
Win = tuple[str, str]
"""The preferred clip's name, then the other's."""


def draw_clips(scores: Mapping[str, int], *, seed: int) -> dict[str, int]:
    """Sample VideoRealBench's 30 clips: a fixed number of each score, by `seed`.

    Raises:
        InvalidSettingError: A score has too few clips.
    """
    rng = random.Random(seed)  # noqa: S311  no secret
    drawn: dict[str, int] = {}
    for score, n in VRB_CLIPS.items():
        names = sorted(name for name, given in scores.items() if given == score)
        if len(names) < n:
            setting, problem = "--plan", f"{len(names)} clips are scored {score}, where VRB has {n}"
            raise InvalidSettingError(setting, problem, "Take --clips all, or --plan gain")
        drawn |= dict.fromkeys(rng.sample(names, n), score)
    return drawn


def list_strict_pairs(scores: Mapping[str, int]) -> list[NamePair]:
    """Return all pairs of clips with different scores, in alphabetical order."""
    pairs = combinations(sorted(scores), 2)
    return [(one, other) for one, other in pairs if scores[one] != scores[other]]


def choose_balanced_pairs(pairs: Sequence[NamePair], *, n: int, seed: int) -> list[NamePair]:
    """Choose `n` pairs at random by `seed`, so that all clips appear about equally often."""
    rng = random.Random(seed)  # noqa: S311  no secret
    left = list(pairs)
    rng.shuffle(left)
    used: dict[str, int] = {}
    chosen: list[NamePair] = []
    while left and len(chosen) < n:
        place = min(range(len(left)), key=lambda at: sum(used.get(c, 0) for c in left[at]))
        pair = left.pop(place)
        used |= {clip: used.get(clip, 0) + 1 for clip in pair}
        chosen.append(pair)
    return chosen


def choose_informative_pairs(
    names: Sequence[str], wins: Sequence[Win], *, n: int, seed: int
) -> list[NamePair]:
    """Return the `n` most informative pairs of `names`, given the `wins` so far.

    Raises:
        InvalidSettingError: There are fewer than two clips, or too many.
    """
    ordered = sorted(set(names))
    if not 2 <= len(ordered) <= MOST:  # noqa: PLR2004  a pair
        setting, problem = "--plan", f"{len(ordered)} clips cannot be weighed against each other"
        raise InvalidSettingError(setting, problem, f"Give 2 to {MOST} clips")
    pairs = list(combinations(range(len(ordered)), 2))
    chosen = choose_pairs(estimate_strengths(ordered, wins), pairs, n=min(n, len(pairs)), seed=seed)
    return [(ordered[pairs[place][0]], ordered[pairs[place][1]]) for place in chosen]


def estimate_strengths(names: Sequence[str], wins: Sequence[Win]) -> StrengthPosterior:
    """Return the estimated strengths of `names` from `wins`, in their order; results of others are ignored."""
    place = {name: number for number, name in enumerate(names)}
    table = np.zeros((len(names), len(names)))
    for winner, loser in wins:
        if winner == loser:
            msg = f"{winner!r} is compared with itself. Drop the pair"
            raise InvalidValueError(msg)
        if winner in place and loser in place:
            table[place[winner], place[loser]] += 1
    return estimate_posterior(table)


COLUMNS: Final = ("first", "second")
_MOST_BYTES: Final = 256 << 20
_REMEDY: Final = "Write two columns, first and second, with the names of two clips in each line"


def write_pairs(path: Path, pairs: Iterable[NamePair]) -> None:
    """Make the file at `path`, or replace it."""
    rows = [dict(zip(COLUMNS, pair, strict=True)) for pair in pairs]
    OutputDirectory(path.parent, published=True).write(path.name, csv_text(COLUMNS, rows).encode())


def read_pairs(path: Path) -> list[NamePair]:
    """Read the pairs of a file, deduplicated, with both names in alphabetical order.

    Raises:
        UnreadableSourceError: The file is unreadable or has no pairs, or a line does not name two
            clips.
    """
    data = read_bytes(path, most=_MOST_BYTES)
    try:
        sheet = csv.DictReader(io.StringIO(data.decode("utf-8-sig")), strict=True)
        rows = list(sheet)
    except (UnicodeDecodeError, csv.Error) as error:
        raise UnreadableSourceError(str(path), f"no table: {error}", _REMEDY) from error
    found: dict[NamePair, None] = {}
    for number, row in enumerate(rows, start=2):
        one, other = sorted(_parse_clip_name(row.get(column)) for column in COLUMNS)
        if not one or one == other:
            raise UnreadableSourceError(str(path), f"line {number} names no two clips", _REMEDY)
        found[one, other] = None
    if not found:
        raise UnreadableSourceError(str(path), "no pairs", _REMEDY)
    return list(found)


def _parse_clip_name(cell: str | None) -> str:
    """Return a clip's name without the quote that stops a spreadsheet from reading it as a formula."""
    name = cell or ""
    sheet = csv_text(("name",), [{"name": name[1:]}]).splitlines()
    is_marked = name.startswith("'") and len(sheet) > 1 and sheet[1].strip('"').startswith("'")
    return name[1:] if is_marked else name
