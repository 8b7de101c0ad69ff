"""How often a team tried, which of its tries is ranked, and what the best of several is worth.

Who submits ten seeds of one generator and shows the best gains by chance alone. So each team has one ranked row on each
board: the try that it declared before any of its tries was played, or else the first that was accepted, withdrawn or
not. Its other tries are rows without a rank, and the best of all is shown with the chance gain taken out.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from unreel.arena.contrast import PERCENT
from unreel.arena.grid import generated, lay_out, real, wrong
from unreel.arena.log import Event, History, State
from unreel.arena.play import SAID_GENERATED, Play
from unreel.arena.standings import Standing, Standings
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.stats.jackknife import FEWEST
from unreel.stats.resampling import RESAMPLES
from unreel.stats.sample import Array

_DECIDES: Final = {"reviewer": "accuracy", "creator": "fakeness"}
_TAIL: Final = 0.025
Kind = Literal["creator", "reviewer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tries:
    """All tries of one team at one board."""

    team: str
    kind: Kind
    submitted: int
    """Refused ones too."""
    entries: tuple[str, ...]
    """Those that were accepted, in that order, withdrawn or not."""
    ranked: str
    """The one that takes a rank; "" where none was accepted."""
    seeds: tuple[int, ...] = ()
    """Of all tries, as far as they have one."""

    @property
    def unranked(self) -> tuple[str, ...]:
        """Rows that are shown without a rank."""
        return tuple(entry for entry in self.entries if entry != self.ranked)


def count_tries(history: History) -> tuple[Tries, ...]:
    """The tries of every team that entered, by team and board."""
    told: defaultdict[tuple[str, Kind], list[Event]] = defaultdict(list)
    for event in history.events:
        if event.kind != "season":
            told[event.team, event.kind].append(event)
    return tuple(_tries(team, kind, events) for (team, kind), events in sorted(told.items()))


def _tries(team: str, kind: Kind, events: Sequence[Event]) -> Tries:
    accepted = dict.fromkeys(e.entry for e in events if e.state is State.ACCEPTED)
    played = [n for n, e in enumerate(events) if e.state is State.PLAYED]
    in_time = events[: played[0]] if played else events
    declared = (e.entry for e in in_time if e.state is State.ACCEPTED and e.declared)
    submitted = [e for e in events if e.state is State.SUBMITTED]
    return Tries(
        team=team,
        kind=kind,
        submitted=len(submitted),
        entries=tuple(accepted),
        ranked=next(declared, next(iter(accepted), "")),
        seeds=tuple(e.seed for e in submitted if e.seed is not None),
    )


def hold_to_one_try(standings: Standings, tries: Sequence[Tries]) -> Standings:
    """The standings with one ranked row for each team; everybody below moves up."""
    unranked = {kind: _of(kind, tries) for kind in _DECIDES}
    return replace(
        standings,
        reviewers=_renumber(standings.reviewers, unranked["reviewer"], "accuracy"),
        creators=_renumber(standings.creators, unranked["creator"], "fakeness"),
    )


def _of(kind: str, tries: Sequence[Tries]) -> frozenset[str]:
    return frozenset(name for each in tries if each.kind == kind for name in each.unranked)


def is_row_of(row: str, entry: str) -> bool:
    """Whether a row of a board is an entry's: in one of its settings, or under its title with its name behind it."""
    return row == entry or row.startswith((f"{entry}/", f"{entry} ("))


def _renumber(
    board: Sequence[Standing], unranked: frozenset[str], figure: str
) -> tuple[Standing, ...]:
    out = {s.name for s in board for entry in unranked if is_row_of(s.name, entry)}
    if not out:
        return tuple(board)
    before = [s.rank for s in board if s.rank is not None and s.name not in out]
    first = min(before, default=None)
    leader = next((s for s in board if s.name not in out and s.rank == first), None)
    told = []
    for standing in board:
        if standing.name in out:
            told.append(replace(standing, rank=None, first_class=False))
        elif standing.rank is not None and leader is not None:
            above = sum(rank < standing.rank for rank in before)
            level = _overlap(standing.figures.get(figure), leader.figures.get(figure))
            told.append(replace(standing, rank=1 + above, first_class=level))
        else:
            told.append(standing)
    ranked = [s for s in told if s.rank is not None]
    return (*ranked, *(s for s in told if s.rank is None))


def _overlap(one: Measured | None, other: Measured | None) -> bool:
    if not isinstance(one, Estimate) or not isinstance(other, Estimate):
        return False
    return one.low <= other.high and other.low <= one.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The best of a team's tries, and what it is worth. Percent."""

    entry: str
    n_tries: int
    raw: float
    """As it was played: caught for a creator, where less is better; right answers for a reviewer."""
    corrected: Measured
    """With the gain taken out that picking one of so many brings by chance."""


def correct_best(play: Play, entries: Sequence[str], *, kind: Kind, seed: int) -> Best | Unmeasured:
    """The best of `entries`, rows of one board, as if all were equally good.

    Scenes are drawn again; how far the luckiest of the tries gets above its own mean is what picking brings. The
    tries are drawn together, so that what all find hard is no luck.
    """
    sums = _sums(play, entries, kind)
    if len(sums) < FEWEST:
        return Unmeasured(f"needs {FEWEST} scenes that all tries share, here are {len(sums)}")
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), size=RESAMPLES)
    observed = _rates(sums.sum(axis=0)[np.newaxis])[0]
    drawn = _rates(np.einsum("rs,sek->rek", weights.astype(np.float64), sums))
    towards = -1.0 if kind == "creator" else 1.0
    luck = (towards * (drawn - observed)).max(axis=1)
    luck = luck[np.isfinite(luck)]
    best = int(np.argmax(towards * observed))
    gains = (float(luck.mean()), *np.quantile(luck, (_TAIL, 1 - _TAIL)))
    value, *ends = (float(observed[best] - towards * gain) for gain in gains)
    value, *ends = (min(PERCENT, max(0.0, each)) for each in (value, *ends))
    corrected = Estimate(
        value=value,
        low=min(value, *ends),
        high=max(value, *ends),
        n=int(sums[:, best, 1].sum()),
        n_clusters=len(sums),
    )
    return Best(
        entry=entries[best], n_tries=len(entries), raw=float(observed[best]), corrected=corrected
    )


def _rates(sums: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        rates: Array = PERCENT * sums[..., 0] / sums[..., 1]
    return rates


def _sums(play: Play, entries: Sequence[str], kind: Kind) -> Array:
    """Counts and answers of each try on each scene that all tries share: scenes x tries x 2."""
    lineup, grid = play.lineup, lay_out(play)
    sums = np.zeros((len(lineup.scenes), len(entries), 2))
    ranked = [n for n, name in enumerate(play.reviewers) if name not in play.floors]
    for at, entry in enumerate(entries):
        if kind == "creator":
            lines, clips = ranked, lineup.creator == lineup.creators.index(entry)
            good = grid == SAID_GENERATED
        else:
            lines, clips = [play.reviewers.index(entry)], generated(lineup) | real(lineup)
            good = ~wrong(lineup, grid)
        read = (grid[lines] >= 0) & clips
        scene = lineup.scene[np.nonzero(read)[1]]
        for column, counted in enumerate((good[lines][read], np.ones(len(scene)))):
            sums[:, at, column] = np.bincount(scene, weights=counted, minlength=len(sums))
    return sums[(sums[:, :, 1] > 0).all(axis=1)]
