"""Train, val and test: whatever shows the same scene goes the same way."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pydantic import TypeAdapter

from unreel.core.errors import UnreadableSourceError
from unreel.core.identity import digest
from unreel.curate.freeze.section import SPLITS
from unreel.curate.piece import Piece
from unreel.curate.step import StepName, Subject, Workbench
from unreel.stats.joining import join


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A clip to be put into a split."""

    clip: str
    label: str
    ties: tuple[str, ...]
    """Clips that share one of these stay together: source video, family, group."""


def assign_splits(
    members: Sequence[Member], *, shares: Mapping[str, int], seed: int
) -> dict[str, str]:
    """The split of each clip, by its id, close to `shares` for each label.

    Bound clips are placed as one, the largest bundles first and equal ones in an order that `seed`
    shuffles, each where its labels are missing most. The order of `members` does not matter.
    """
    bundles = _bundles(members)
    order = sorted(bundles, key=lambda ids: (-len(ids), digest("split", str(seed), ids[0])))
    label_of = {member.clip: member.label for member in members}
    wanted = _targets(Counter(label_of.values()), shares)
    placed: Counter[tuple[str, str]] = Counter()
    n_placed: Counter[str] = Counter()
    chosen: dict[str, str] = {}
    for ids in order:
        labels = Counter(label_of[clip] for clip in ids)
        split = min(
            (split for split, share in shares.items() if share),
            key=lambda split: (
                _strain(split, labels, placed=placed, wanted=wanted),
                Fraction(n_placed[split], shares[split]),
            ),
        )
        for label, n in labels.items():
            placed[split, label] += n
            n_placed[split] += n
        chosen |= dict.fromkeys(ids, split)
    return chosen


def _targets(
    totals: Mapping[str, int], shares: Mapping[str, int]
) -> dict[tuple[str, str], Fraction]:
    whole = sum(shares.values())
    return {
        (split, label): Fraction(share * n, whole)
        for split, share in shares.items()
        for label, n in totals.items()
    }


def _strain(
    split: str,
    labels: Mapping[str, int],
    *,
    placed: Mapping[tuple[str, str], int],
    wanted: Mapping[tuple[str, str], Fraction],
) -> Fraction:
    """By how much the squared distance from the targets grows, in parts of the targets."""
    return sum(
        (
            Fraction(n * (2 * placed[split, label] + n)) / wanted[split, label] - 2 * n
            for label, n in labels.items()
        ),
        Fraction(0),
    )


def _bundles(members: Sequence[Member]) -> list[list[str]]:
    """Ids of clips that ties bind, sorted within each bundle."""
    holders: dict[str, str] = {}
    pairs = [(m.clip, holders.setdefault(tie, m.clip)) for m in members for tie in m.ties]
    return join(sorted({member.clip for member in members}), pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Where a clip goes."""

    split: str


def draw_splits(
    bench: Workbench, pieces: Sequence[Piece], *, shares: Sequence[int], seed: int
) -> dict[str, str]:
    """The split of each piece, by the id of its clip."""
    settings = {"shares": shares, "seed": seed}
    step = StepName(name="splits", version=1, settings=settings, finds=TypeAdapter(Drawn))
    subjects = [piece.subject(label=piece.entry.label.value, ties=_ties(piece)) for piece in pieces]

    def decide(asked: Sequence[Subject]) -> list[Drawn]:
        members = [
            Member(clip=own.clip, label=own.given["label"], ties=tuple(own.given["ties"]))
            for own in asked
        ]
        by_split = dict(zip(SPLITS, shares, strict=True))
        chosen = assign_splits(members, shares=by_split, seed=seed)
        return [Drawn(split=chosen[subject.clip]) for subject in asked]

    drawn = bench.settle(step, subjects, decide)
    return {piece.clip.id: _split(own.split) for piece, own in zip(pieces, drawn, strict=True)}


def _split(name: str) -> str:
    """A split is a folder of the benchmark: a table that something else wrote names no other."""
    if name in SPLITS:
        return name
    source, problem = "steps/splits.lance", f"{name!a} is no split of a benchmark"
    raise UnreadableSourceError(source, problem, "Something else wrote this: make it again")


def _ties(piece: Piece) -> list[str]:
    ties = [f"source {piece.source}"]
    if piece.family:
        ties.append(f"family {piece.family}")
    if piece.entry.group:
        ties.append(f"group {piece.entry.group}")
    return ties
