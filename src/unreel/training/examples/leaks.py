"""Check whether training data contains clips of the evaluation set."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from unreel.core.clip import Clip
from unreel.core.errors import InvalidSettingError
from unreel.media.matching import ClipMatch
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
    """A clip that is trained on, beside one to be scored on."""

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
    alike = _alike(matches, by_clip)
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


def _alike(matches: Iterable[ClipMatch], by_clip: Mapping[str, str]) -> dict[str, str]:
    """For each clip that shows the same as one that is trained on, that one's name."""
    alike: dict[str, str] = {}
    for match in matches:
        if match.first in by_clip:
            alike.setdefault(match.second, by_clip[match.first])
        if match.second in by_clip:
            alike.setdefault(match.first, by_clip[match.second])
    return alike
