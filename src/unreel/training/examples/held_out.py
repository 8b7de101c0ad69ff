"""Held-out data: whole scenes with all duplicates, sampled by hash."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from unreel.core.clip import Clip
from unreel.core.errors import InvalidSettingError
from unreel.core.identity import digest
from unreel.media.near_duplicates import ClipMatch
from unreel.stats.connected_groups import join
from unreel.training.examples.example import TrainingExample

_TOLD: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class UnseenClip:
    """A clip that must stay unseen."""

    name: str
    benchmark: str
    source: str
    clip: Clip


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingLeak:
    """A clip that is trained on, next to one to be scored on."""

    trained: str
    unseen: str
    benchmark: str
    why: str
    """`same bytes`, `same source` or `near-duplicate`."""

    def __str__(self) -> str:
        return f"{self.trained} and {self.unseen} of {self.benchmark} ({self.why})"


def find_leaks(
    trained: Iterable[TrainingExample], unseen: Sequence[UnseenClip], matches: Iterable[ClipMatch]
) -> tuple[TrainingLeak, ...]:
    """Return the clips of `unseen` that are in training, each once with its strongest match."""
    by_clip: dict[str, str] = {}
    by_source: dict[str, str] = {}
    for example in trained:
        by_clip |= {clip.id: example.name for clip in example.clips}
        if example.source:
            by_source.setdefault(example.source, example.name)
    alike = _map_similar_clips(matches, by_clip)
    leaks = []
    for each in unseen:
        ties = {
            "same bytes": by_clip.get(each.clip.id),
            "near-duplicate": alike.get(each.clip.id),
            "same source": by_source.get(each.source),
        }
        why = next((why for why, name in ties.items() if name is not None), None)
        if why is not None:
            leaks.append(
                TrainingLeak(
                    trained=ties[why] or "", unseen=each.name, benchmark=each.benchmark, why=why
                )
            )
    return tuple(leaks)


def refuse(leaks: Sequence[TrainingLeak]) -> None:
    """Refuse to train where any clip leaks."""
    if not leaks:
        return
    setting = "holdout.benchmarks"
    told = "; ".join(map(str, leaks[:_TOLD]))
    more = f"; and {len(leaks) - _TOLD} more" if len(leaks) > _TOLD else ""
    problem = f"{len(leaks)} test clips are also in the training data: {told}{more}"
    remedy = "Take them out of one side, name another split, or train so with --accept-leak"
    raise InvalidSettingError(setting, problem, remedy)


def _map_similar_clips(matches: Iterable[ClipMatch], by_clip: Mapping[str, str]) -> dict[str, str]:
    """Return, by clip id, the name of a training example with the same content."""
    alike: dict[str, str] = {}
    for match in matches:
        if match.first in by_clip:
            alike.setdefault(match.second, by_clip[match.first])
        if match.second in by_clip:
            alike.setdefault(match.first, by_clip[match.second])
    return alike


_SOURCE: Final = "source "
_CLIP: Final = "clip "


def bind(examples: Sequence[TrainingExample], kin: Iterable[tuple[str, str]]) -> list[str]:
    """Return the bundle of each example.

    A bundle joins clips with the same source, the same bytes or the same content. `kin` holds pairs
    of ids of clips with the same content. A bundle has the name of one of its sources; the name
    stays the same if added clips connect nothing new to the bundle.
    """
    ties = [_list_group_keys(example) for example in examples]
    names = sorted({tie for own in ties for tie in own})
    known = set(names)
    pairs = [(own[0], other) for own in ties for other in own[1:]]
    pairs += [
        (_CLIP + first, _CLIP + second)
        for first, second in kin
        if _CLIP + first in known and _CLIP + second in known
    ]
    bundle = {tie: _select_group_name(group) for group in join(names, pairs) for tie in group}
    return [bundle[own[0]] for own in ties]


def draw(bundles: Iterable[str], *, share: float, seed: int) -> frozenset[str]:
    """Return the bundles that are held out.

    Each bundle is chosen by the hash of its own name, so that a new bundle does not affect the
    others. If `share` is above 0, at least one bundle is held out and at least one is left to
    train.

    Raises:
        InvalidSettingError: There is only one bundle.
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


def _list_group_keys(example: TrainingExample) -> list[str]:
    ties = [_CLIP + clip.id for clip in example.clips]
    # Where nobody names a scene the clip is one, and a twin that was made from it names it so.
    return [_SOURCE + (example.source or example.name), *ties]


def _select_group_name(group: Sequence[str]) -> str:
    """Return the source with the lowest hash in the bundle.

    With this name a larger bundle is not more likely to be held out.
    """
    sources = (tie.removeprefix(_SOURCE) for tie in group if tie.startswith(_SOURCE))
    return min(sources, key=lambda source: digest("bundle", source))
