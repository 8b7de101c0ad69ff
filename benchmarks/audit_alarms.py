"""How often the audit calls a set leaking, over simulated sets whose leak is known.

    python benchmarks/audit_alarms.py --sets 200

Prints the table of docs/audit.md. Every set has 96 clips of three shapes: *crossed*, 24 scenes that each of three creators covers
beside the real clip; *nested*, six creators with four scenes of two clips each beside 24 real scenes of two; *single*, the same by one
creator. Half of what a scene's clips have in their numbers is shared by the scene. The leak lies in the bit
rate alone: the best possible model reaches the AUC of the second column. `--further` has shapes that no rule was made for: creators who cover
the same prompts beside unrelated real clips, 20 generated clips among 600 real ones, a creator for each clip, and creators who each
have a habit of their own, which is no leak to a creator that was not seen. `--sizes` has 100 generated and 100 real clips; every creator
has a frame size of its own, and real clips are drawn from the same sizes: all equally often, or so that the size alone reaches the AUC of the
second column. Sets `without group` have one size for all and scenes that are not declared.
"""

import argparse
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist, fmean
from typing import Any

from unreel.core.box import Box
from unreel.core.clip import ClipFacts, VideoFacts
from unreel.core.estimate import Estimate
from unreel.curation.audit.clip_features import AuditFeatureSet, ClipAuditData
from unreel.curation.audit.label_leaks import LabelLeakAudit, LabelLeakFinding, audit_label_leaks
from unreel.curation.watermark.detection import (
    WatermarkKind,
    WatermarkRegion,
    WatermarkSearchResult,
)
from unreel.stats.proportion import mid_p_interval

LEAKS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SIZE_LEAKS = (0.5, 0.7, 0.8)
SLOPE_ROUNDING = 1e-9
CERTAIN = 8.0
"""A shift in spreads that leaves no overlap."""
FRAME_NUMBERS = 12
MARKED = 0.2
HABIT = 1.0
"""Spread of what a creator adds to each number of its own, in spreads of a clip."""


@dataclass(frozen=True)
class Shape:
    """Who made which scenes: pairs of a creator, `None` for a real clip, and a scene."""

    name: str
    clips: tuple[tuple[str | None, str], ...]
    habits: bool = False
    n_sizes: int = 1
    """Frame sizes; beyond one, creator number k has size number k and a leak lies in the sizes."""
    declares_groups: bool = True


def main() -> None:
    asked = _arguments()
    print(
        "| shape | leak | AUC found | on unseen creators | leaks | clean | inconclusive | any view alarms | holds the leak | holds 0.5 |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for shape in _shapes(asked):
        noise = asked.noise or shape.habits or not shape.declares_groups
        for leak in LEAKS[:1] if noise else SIZE_LEAKS if shape.n_sizes > 1 else LEAKS:
            audits = [_audit(shape, leak, number) for number in range(asked.sets)]
            print(_row(shape, leak, audits), flush=True)


def _arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=200, help="sets for each line")
    parser.add_argument("--only", default="", help="the shape of this name alone")
    parser.add_argument("--further", action="store_true", help="shapes that no rule was made for")
    parser.add_argument("--sizes", action="store_true", help="creators with sizes of their own")
    parser.add_argument("--noise", action="store_true", help="sets without a leak alone")
    return parser.parse_args()


def _shapes(asked: Any) -> Iterator[Shape]:
    makers = "ABCDEF"
    real = [(None, f"filmed {i // 2}") for i in range(48)]
    shapes = [
        Shape("crossed", tuple((c, f"{i}") for i in range(24) for c in (None, *"ABC"))),
        Shape("nested", (*((makers[i // 8], f"{i // 2}") for i in range(48)), *real)),
        Shape("single", (*(("A", f"{i // 2}") for i in range(48)), *real)),
    ]
    if asked.further:
        prompts = [(maker, f"prompt {i}") for i in range(12) for maker in "ABCD"]
        lone = [(None, f"filmed {i}") for i in range(600)]
        few = [(makers[i % 6], f"made {i}") for i in range(20)]
        shapes = [
            Shape("prompts", (*prompts, *((None, f"filmed {i}") for i in range(48)))),
            Shape("30 to 1", (*few, *lone)),
            Shape("a creator for each clip", (*((f"{i}", f"{i}") for i in range(48)), *real)),
            Shape("habits, nested", shapes[1].clips, habits=True),
            Shape("habits, crossed", shapes[0].clips, habits=True),
        ]
    if asked.sizes:
        shapes = [
            _sized("5 sizes", n_sizes=5, n_per_scene=1),
            _sized("5 sizes, scenes of two", n_sizes=5, n_per_scene=2),
            _sized("10 sizes, scenes of two", n_sizes=10, n_per_scene=2),
            _ungrouped("without group, scenes of two", n_per_scene=2),
            _ungrouped("without group, scenes of five", n_per_scene=5),
        ]
    yield from (shape for shape in shapes if asked.only in ("", shape.name))


def _sized(name: str, *, n_sizes: int, n_per_scene: int) -> Shape:
    made = [(f"{i * n_sizes // 100}", f"made {i // n_per_scene}") for i in range(100)]
    real = [(None, f"filmed {i // n_per_scene}") for i in range(100)]
    return Shape(name, (*made, *real), n_sizes=n_sizes)


def _ungrouped(name: str, *, n_per_scene: int) -> Shape:
    grouped = _sized(name, n_sizes=5, n_per_scene=n_per_scene)
    return replace(grouped, n_sizes=1, declares_groups=False)


def _size_weights(n_sizes: int, leak: float) -> list[float]:
    """Weights of the sizes of real clips, so that the best model of the size alone reaches `leak`."""
    low, high = 0.0, 10.0
    while high - low > SLOPE_ROUNDING:
        slope = (low + high) / 2
        low, high = (slope, high) if _size_auc(n_sizes, slope) < leak else (low, slope)
    return [math.exp(-low * size) for size in range(n_sizes)]


def _size_auc(n_sizes: int, slope: float) -> float:
    weights = [math.exp(-slope * size) for size in range(n_sizes)]
    below = [sum(weights[:size]) + weights[size] / 2 for size in range(n_sizes)]
    return fmean(below) / sum(weights)


def _draw_widths(shape: Shape, leak: float, dice: random.Random) -> dict[str, int]:
    """Return the width of each scene's clips. Wide sizes are not more often real than narrow ones."""
    weights = _size_weights(shape.n_sizes, leak)
    widths = dice.sample(range(640, 640 + 128 * shape.n_sizes, 128), shape.n_sizes)
    return {
        scene: dice.choices(widths, weights)[0] if maker is None else widths[int(maker)]
        for maker, scene in dict.fromkeys(shape.clips)
    }


def _audit(shape: Shape, leak: float, number: int) -> LabelLeakAudit:
    dice = random.Random(f"{shape.name} {leak} {number}")
    if shape.n_sizes > 1:
        widths, shift = _draw_widths(shape, leak, dice), 0.0
    else:
        widths, shift = {}, _shift(leak)
    scenes = {scene: _numbers(dice) for _, scene in sorted(shape.clips, key=str)}
    spread = HABIT if shape.habits else 0.0
    makers = sorted({maker for maker, _ in shape.clips if maker is not None})
    habits = {maker: [spread * number for number in _numbers(dice)] for maker in makers}
    seen = []
    for i, owner in enumerate(shape.clips):
        one = _observation(i, owner, scenes, habits, dice=dice, shift=shift)
        facts = one.facts
        if owner[1] in widths and isinstance(facts, ClipFacts):
            video = replace(facts.video, width=widths[owner[1]])
            one = replace(one, facts=replace(facts, video=video))
        seen.append(one if shape.declares_groups else replace(one, group=""))
    return audit_label_leaks(seen, seed=number)


def _shift(leak: float) -> float:
    return CERTAIN if leak == 1 else math.sqrt(2) * NormalDist().inv_cdf(leak)


def _numbers(dice: random.Random) -> list[float]:
    return [dice.gauss(0, 1) for _ in range(FRAME_NUMBERS + 3)]


def _observation(
    number: int,
    owner: tuple[str | None, str],
    scenes: dict[str, list[float]],
    habits: dict[str, list[float]],
    *,
    dice: random.Random,
    shift: float,
) -> ClipAuditData:
    creator, scene = owner
    habit = [0.0] * (FRAME_NUMBERS + 3) if creator is None else habits[creator]
    bits, length, rate, *frame = (
        math.sqrt(0.5) * (shared + own) + added
        for shared, own, added in zip(scenes[scene], _numbers(dice), habit, strict=True)
    )
    fps = (24, 25, 30)[min(2, max(0, round(rate + 1)))]
    n_frames = max(20, round(150 + 30 * length))
    video = VideoFacts(
        codec="h264",
        pixel_format="yuv420p",
        width=1280,
        height=720,
        rotation_deg=0,
        n_frames=n_frames,
        average_rate=Fraction(fps),
        variable_rate=False,
        first_at_s=Fraction(0),
        duration_s=Fraction(n_frames, fps),
    )
    bits += shift if creator is not None else 0.0
    size_bytes = round(n_frames * 20_000 * math.exp(0.1 * bits))
    corner = Box(0.9, 0.9, 0.98, 0.97) if dice.random() < 1 / 2 else Box(0.02, 0.9, 0.1, 0.97)
    mark = WatermarkRegion(box=corner, kind=WatermarkKind.LOGO, stability=1.0)
    return ClipAuditData(
        clip=f"clip {number:04}",
        creator=creator,
        group=scene,
        facts=ClipFacts(container="mp4", size_bytes=size_bytes, video=video),
        frame={f"number {i}": value for i, value in enumerate(frame)},
        watermarks=WatermarkSearchResult(found=(mark,) if dice.random() < MARKED else ()),
    )


def _row(shape: Shape, leak: float, audits: list[LabelLeakAudit]) -> str:
    told = [one[AuditFeatureSet.METADATA].auc for one in audits]
    aucs = [auc for auc in told if isinstance(auc, Estimate)]
    carried = [one[AuditFeatureSet.METADATA].transfer for one in audits]
    transfer = [auc.value for auc in carried if isinstance(auc, Estimate)]
    counts = [sum(one.finding is finding for one in audits) for finding in LabelLeakFinding]
    alarms = sum(any(v.finding is LabelLeakFinding.LEAKS for v in one.views) for one in audits)
    holds = [sum(auc.low <= truth <= auc.high for auc in aucs) for truth in (leak, 0.5)]
    shares = " | ".join(_share(count, len(audits)) for count in (*counts, alarms, *holds))
    unseen = f"{fmean(transfer):.3f}" if transfer else "—"
    return f"| {shape.name} | {leak:.1f} | {fmean(auc.value for auc in aucs):.3f} | {unseen} | {shares} |"


def _share(count: int, n: int) -> str:
    low, high = mid_p_interval(count / n, n, level=0.95)
    return f"{count / n:.0%} [{100 * low:.0f}, {100 * high:.0f}]"


if __name__ == "__main__":
    main()
