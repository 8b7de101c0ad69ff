"""Train, val and test: whatever shows the same scene goes the same way."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from unreel.core.identity import digest


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
    parent: dict[str, str] = {}

    def root(node: str) -> str:
        parent.setdefault(node, node)
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for member in members:
        own = root(f"clip {member.clip}")
        for tie in member.ties:
            parent[root(f"tie {tie}")] = own = root(own)
    found: defaultdict[str, list[str]] = defaultdict(list)
    for member in members:
        found[root(f"clip {member.clip}")].append(member.clip)
    return [sorted(ids) for ids in found.values()]
