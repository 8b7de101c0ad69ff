"""Choice of the pairs of clips that annotators compare, and ranking of the clips by the results."""

import csv
import io
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

import numpy as np

from unreel.annotation.campaign import AnnotatorJudgement, PassFailAnswer, PreferenceAnswer
from unreel.core.errors import InvalidSettingError, InvalidValueError, UnreadableSourceError
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.core.input_files import read_limited_bytes
from unreel.core.output_files import OutputDirectory
from unreel.core.table_formats import build_csv_table
from unreel.core.verdict import Position
from unreel.stats.bootstrap import bootstrap_mean
from unreel.stats.next_pair import (
    MAX_COMPETITORS,
    StrengthPosterior,
    choose_next_pairs,
    estimate_strength_posterior,
)
from unreel.stats.proportion import central_normal_quantile, estimate_proportion
from unreel.stats.ranking import BattleOutcome, ClipBattle, bradley_terry

VRB_CLIPS = {1: 3, 2: 7, 3: 10, 4: 6, 5: 4}
"""Number of clips of each score among VideoRealBench's 30 clips."""
NamePair = tuple[str, str]
"""Names of two clips in alphabetical order; the campaign chooses the side on which each is shown."""
Win = tuple[str, str]
"""Names of the preferred clip and of the other clip."""


def sample_clips_by_score(scores: Mapping[str, int], *, seed: int) -> dict[str, int]:
    """Sample clips as VideoRealBench does: 30 clips, with a fixed number of each score."""
    rng = random.Random(seed)  # noqa: S311  no secret
    sample: dict[str, int] = {}
    for score, n in VRB_CLIPS.items():
        names = sorted(name for name, s in scores.items() if s == score)
        if len(names) < n:
            raise InvalidSettingError(
                "--plan",
                f"{len(names)} clips are scored {score}, but VRB has {n}",
                "Take --clips all, or --plan gain",
            )
        sample |= dict.fromkeys(rng.sample(names, n), score)
    return sample


def list_different_score_pairs(scores: Mapping[str, int]) -> list[NamePair]:
    """Return all pairs of clips with different scores, in alphabetical order."""
    pairs = combinations(sorted(scores), 2)
    return [(a, b) for a, b in pairs if scores[a] != scores[b]]


def choose_balanced_pairs(pairs: Sequence[NamePair], *, n: int, seed: int) -> list[NamePair]:
    """Choose `n` of the pairs at random by `seed`, so that all clips occur about equally often."""
    rng = random.Random(seed)  # noqa: S311  no secret
    left = list(pairs)
    rng.shuffle(left)
    used: dict[str, int] = {}
    chosen: list[NamePair] = []
    while left and len(chosen) < n:
        i = min(range(len(left)), key=lambda at: sum(used.get(c, 0) for c in left[at]))
        pair = left.pop(i)
        used |= {clip: used.get(clip, 0) + 1 for clip in pair}
        chosen.append(pair)
    return chosen


def choose_informative_pairs(
    names: Sequence[str], wins: Sequence[Win], *, n: int, seed: int
) -> list[NamePair]:
    """Choose the `n` pairs of clips whose comparison adds most information to `wins` so far."""
    ordered = sorted(set(names))
    if not 2 <= len(ordered) <= MAX_COMPETITORS:  # noqa: PLR2004  a pair
        raise InvalidSettingError(
            "--plan",
            f"{len(ordered)} clips cannot be weighed against each other",
            f"Give 2 to {MAX_COMPETITORS} clips",
        )
    pairs = list(combinations(range(len(ordered)), 2))
    chosen = choose_next_pairs(
        estimate_clip_strengths(ordered, wins), pairs, n=min(n, len(pairs)), seed=seed
    )
    return [(ordered[pairs[i][0]], ordered[pairs[i][1]]) for i in chosen]


def estimate_clip_strengths(names: Sequence[str], wins: Sequence[Win]) -> StrengthPosterior:
    """Estimate the strengths of the clips `names`, as a posterior in their order, from `wins`.

    Comparisons with clips that are not in `names` are ignored.
    """
    index = {name: number for number, name in enumerate(names)}
    table = np.zeros((len(names), len(names)))
    for winner, loser in wins:
        if winner == loser:
            raise InvalidValueError(f"{winner!r} is compared with itself. Drop the pair")
        if winner in index and loser in index:
            table[index[winner], index[loser]] += 1
    return estimate_strength_posterior(table)


COLUMNS = ("first", "second")
_MAX_BYTES = 256 << 20
_REMEDY = "Write two columns, first and second, with the names of two clips in each line"


def write_pair_file(path: Path, pairs: Iterable[NamePair]) -> None:
    """Write pairs of clip names as CSV to `path`; replace an existing file."""
    rows = [dict(zip(COLUMNS, pair, strict=True)) for pair in pairs]
    OutputDirectory(path.parent, published=True).write(
        path.name, build_csv_table(COLUMNS, rows).encode()
    )


def read_pair_file(path: Path) -> list[NamePair]:
    """Read the pairs of a file, deduplicated, with both names in alphabetical order."""
    data = read_limited_bytes(path, most=_MAX_BYTES)
    try:
        reader = csv.DictReader(io.StringIO(data.decode("utf-8-sig")), strict=True)
        rows = list(reader)
    except (UnicodeDecodeError, csv.Error) as error:
        raise UnreadableSourceError(str(path), f"no table: {error}", _REMEDY) from error
    pairs: dict[NamePair, None] = {}
    for number, row in enumerate(rows, start=2):
        names = []
        for name in (row.get(column) or "" for column in COLUMNS):
            # A name may have a quote that stops spreadsheets reading a formula.
            cells = build_csv_table(("name",), [{"name": name[1:]}]).splitlines()
            is_marked = name.startswith("'") and len(cells) > 1
            is_marked = is_marked and cells[1].strip('"').startswith("'")
            names.append(name[1:] if is_marked else name)
        first, second = sorted(names)
        if not first or first == second:
            raise UnreadableSourceError(str(path), f"line {number} names no two clips", _REMEDY)
        pairs[first, second] = None
    if not pairs:
        raise UnreadableSourceError(str(path), "no pairs", _REMEDY)
    return list(pairs)


_MAX_ANSWER_PAIRS = 1_000_000
"""Maximum number of pairs of a passed and a failed answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedClip:
    """Rank, Bradley-Terry strength and win rate of one clip in a ranking."""

    place: int
    """Rank from 1, by posterior strength, which exists for any number of comparisons."""
    name: str
    strength: Measured
    """Bradley-Terry strength, a natural logarithm around 0, with an interval by resampling."""
    believed: Measured
    """Posterior strength after all comparisons, by a prior around 0 whose spread is estimated. It also has
    an interval if few comparisons leave resamples without a value. It treats comparisons as
    independent and is therefore not measured for pairs of one annotator's answers.
    """
    share: Measured
    """Fraction of the clip's comparisons that it won, or of its answers that passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipRanking:
    """Ranking of clips, the strongest first, with the number of judgements and comparisons."""

    clips: tuple[RankedClip, ...]
    n_judgements: int
    n_comparisons: int
    """Number of preferences, or of pairs of a passed and a failed answer by the same annotator."""
    drawn: str
    """Unit of resampling: `pair`, or `annotator`."""


def rank_clips(
    judgements: Iterable[AnnotatorJudgement], *, seed: int, level: float = 0.95
) -> ClipRanking:
    """Rank the clips of a campaign by its preference or pass-fail judgements."""
    answers = list(judgements)
    results: dict[str, list[tuple[float, str]]] = {}
    if all(isinstance(a.value, PreferenceAnswer) for a in answers):
        battles, unit = list(_iter_preference_battles(answers)), "pair"
        for battle in battles:
            results.setdefault(battle.first, []).append((1.0, battle.clip))
            results.setdefault(battle.second, []).append((0.0, battle.clip))
        # The comparisons of one pair are resampled together.
        proportions = {
            name: bootstrap_mean(
                [score for score, _ in outcomes],
                seed=seed,
                clusters=[pair for _, pair in outcomes],
                bounds=(0, 1),
                level=level,
            )
            for name, outcomes in results.items()
        }
    elif all(isinstance(a.value, PassFailAnswer) for a in answers):
        battles, unit = list(_iter_pass_fail_battles(answers)), "annotator"
        n_judged = Counter(a.task.names[0] for a in answers)
        n_passed = Counter(
            a.task.names[0]
            for a in answers
            if isinstance(a.value, PassFailAnswer) and a.value.passed
        )
        proportions = {
            name: estimate_proportion(n_passed[name], n, level=level)
            for name, n in n_judged.items()
        }
    else:
        raise InvalidValueError(
            "only preferences and pass/fail answers rank clips. Name another campaign"
        )
    if not battles or len(proportions) > MAX_COMPETITORS:
        raise InvalidValueError(
            f"{len(battles)} comparisons of {len(proportions)} clips give no ranking. Pull more judgements"
        )
    strengths = bradley_terry(battles, seed=seed, level=level)
    names = sorted(proportions)
    posterior = estimate_clip_strengths(
        names, [(battle.first, battle.second) for battle in battles]
    )
    n_compared = Counter(name for battle in battles for name in (battle.first, battle.second))
    nothing = Unmeasured("no annotator passed one of it and another clip, and failed the other")
    clips = []
    order = sorted(range(len(names)), key=lambda at: (-posterior.mean[at], names[at]))
    for rank, at in enumerate(order, start=1):
        name, row = names[at], posterior.covariance[at]
        # Relative to the mean of all clips: the common level contains no information about the order.
        value = float(posterior.mean[at] - posterior.mean.mean())
        variance = float(row[at] - 2 * row.mean() + posterior.covariance.mean())
        margin = central_normal_quantile(level) * max(variance, 0.0) ** 0.5
        believed: Measured = Unmeasured("answers are part of many pairs")
        if unit == "pair":
            believed = Estimate(
                value=value,
                low=value - margin,
                high=value + margin,
                n=n_compared[name],
                level=level,
            )
        clips.append(
            RankedClip(
                place=rank,
                name=name,
                strength=strengths.get(name, nothing),
                believed=believed,
                share=proportions[name],
            )
        )
    return ClipRanking(
        clips=tuple(clips), n_judgements=len(answers), n_comparisons=len(battles), drawn=unit
    )


def iter_preference_wins(judgements: Iterable[AnnotatorJudgement]) -> Iterator[tuple[str, str]]:
    """Yield the names of the preferred clip and of the other clip of each preference judgement."""
    for battle in _iter_preference_battles(judgements):
        yield battle.first, battle.second


def _iter_preference_battles(judgements: Iterable[AnnotatorJudgement]) -> Iterator[ClipBattle]:
    """Yield each preference as a battle, winner first; all judgements of a pair are resampled together."""
    for judgement in judgements:
        if isinstance(judgement.value, PreferenceAnswer):
            first, second = judgement.task.names
            is_first = judgement.value.better is Position.FIRST
            winner, loser = (first, second) if is_first else (second, first)
            yield ClipBattle(winner, loser, BattleOutcome.FIRST, judgement.task.id)


def _iter_pass_fail_battles(judgements: Iterable[AnnotatorJudgement]) -> Iterator[ClipBattle]:
    answers: dict[str, dict[bool, list[str]]] = {}
    for judgement in judgements:
        if isinstance(judgement.value, PassFailAnswer):
            clips = answers.setdefault(judgement.annotator, {True: [], False: []})
            clips[judgement.value.passed].append(judgement.task.names[0])
    if (
        n := sum(len(clips[True]) * len(clips[False]) for clips in answers.values())
    ) > _MAX_ANSWER_PAIRS:
        raise InvalidValueError(
            f"{n} pairs of answers are more than {_MAX_ANSWER_PAIRS}. Rank fewer clips"
        )
    for annotator, clips in answers.items():
        for passed, failed in product(clips[True], clips[False]):
            if passed != failed:
                yield ClipBattle(passed, failed, BattleOutcome.FIRST, annotator)
