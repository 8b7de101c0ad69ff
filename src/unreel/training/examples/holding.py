"""Held-out data: whole scenes with all duplicates, sampled by hash."""

from collections.abc import Iterable, Sequence
from typing import Final

from unreel.core.errors import InvalidSettingError
from unreel.core.identity import digest
from unreel.stats.joining import join
from unreel.training.examples.example import TrainingExample

_SOURCE: Final = "source "
_CLIP: Final = "clip "


def bind(examples: Sequence[TrainingExample], kin: Iterable[tuple[str, str]]) -> list[str]:
    """For each example the bundle that it belongs to: clips of one source, with one set of bytes, or that show the same.

    `kin` are ids of clips that show the same. A bundle is named by one of the sources in it: the same
    however many clips are added that bind nothing new to it.
    """
    ties = [_ties(example) for example in examples]
    names = sorted({tie for own in ties for tie in own})
    known = set(names)
    pairs = [(own[0], other) for own in ties for other in own[1:]]
    pairs += [
        (_CLIP + first, _CLIP + second)
        for first, second in kin
        if _CLIP + first in known and _CLIP + second in known
    ]
    bundle = {tie: _name(group) for group in join(names, pairs) for tie in group}
    return [bundle[own[0]] for own in ties]


def draw(bundles: Iterable[str], *, share: float, seed: int) -> frozenset[str]:
    """Those of `bundles` that are held out: each decides by its own name, so that one more moves no other.

    Where any share is held out, one bundle is at least, and one is left to learn from.

    Raises:
        InvalidSettingError: There is but one.
    """
    placed = sorted({(digest("held out", str(seed), name), name) for name in bundles})
    if share == 0 or not placed:
        return frozenset()
    if len(placed) == 1:
        setting, problem = "holdout.share", f"all clips belong to one scene, {placed[0][1]!r}"
        remedy = (
            "Add clips of other scenes, name a split that is held out (holdout.split), or set "
            "holdout.share=0 to hold nothing out"
        )
        raise InvalidSettingError(setting, problem, remedy)
    n_held = sum(int(drawn[:13], 16) < share * 16**13 for drawn, _ in placed)
    n_held = min(max(n_held, 1), len(placed) - 1)
    return frozenset(name for _, name in placed[:n_held])


def _ties(example: TrainingExample) -> list[str]:
    ties = [_CLIP + clip.id for clip in example.clips]
    # Where nobody names a scene the clip is one, and a twin that was made from it names it so.
    return [_SOURCE + (example.source or example.name), *ties]


def _name(group: Sequence[str]) -> str:
    """Of its sources the one with the least digest: no larger bundle is likelier drawn."""
    sources = (tie.removeprefix(_SOURCE) for tie in group if tie.startswith(_SOURCE))
    return min(sources, key=lambda source: digest("bundle", source))
