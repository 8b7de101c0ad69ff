"""How often the audit calls a set leaking, over simulated sets whose leak is known.

    python benchmarks/audit_alarms.py --sets 200

Prints the table of docs/audit.md. Every set has 96 clips of three shapes: *crossed*, 24 scenes that each of three creators covers
beside the real clip; *nested*, six creators with four scenes of two clips each beside 24 real scenes of two; *single*, the same by one
creator. Half of what a scene's clips have in their numbers is shared by the scene. The leak lies in the bit
rate alone: the best possible model reaches the AUC of the second column. `--further` has shapes that no rule was made for: creators who cover
the same prompts beside unrelated real clips, 20 generated clips among 600 real ones, a creator for each clip, and creators who each
have a habit of their own, which is no leak to a creator that was not seen.
"""

import argparse
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist, fmean
from typing import Any

from unreel.core.box import Box
from unreel.core.estimate import Estimate
from unreel.core.facts import ClipFacts, VideoFacts
from unreel.curate.audit.audit import Audit, Finding, audit
from unreel.curate.audit.observation import Observation
from unreel.curate.audit.views import View
from unreel.curate.watermark.mark import Mark, MarkKind, Watermarks

LEAKS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
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


def main() -> None:
    asked = _arguments()
    print(
        "| shape | leak | AUC found | leaks | clean | inconclusive | any view alarms | holds the leak | holds 0.5 |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for shape in _shapes(asked):
        for leak in LEAKS[:1] if asked.noise or shape.habits else LEAKS:
            audits = [_audit(shape, leak, number) for number in range(asked.sets)]
            print(_row(shape, leak, audits), flush=True)


def _arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=200, help="sets for each line")
    parser.add_argument("--only", default="", help="the shape of this name alone")
    parser.add_argument("--further", action="store_true", help="shapes that no rule was made for")
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
    yield from (shape for shape in shapes if asked.only in ("", shape.name))


def _audit(shape: Shape, leak: float, number: int) -> Audit:
    dice = random.Random(f"{shape.name} {leak} {number}")
    shift = CERTAIN if leak == 1 else math.sqrt(2) * NormalDist().inv_cdf(leak)
    scenes = {scene: _numbers(dice) for _, scene in sorted(shape.clips, key=str)}
    spread = HABIT if shape.habits else 0.0
    makers = sorted({maker for maker, _ in shape.clips if maker is not None})
    habits = {maker: [spread * number for number in _numbers(dice)] for maker in makers}
    return audit(
        (
            _observation(i, shape.clips[i], scenes, habits, dice=dice, shift=shift)
            for i in range(len(shape.clips))
        ),
        seed=number,
    )


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
) -> Observation:
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
    mark = Mark(box=corner, kind=MarkKind.LOGO, stability=1.0)
    return Observation(
        clip=f"clip {number:04}",
        creator=creator,
        group=scene,
        facts=ClipFacts(container="mp4", size_bytes=size_bytes, video=video),
        frame={f"number {i}": value for i, value in enumerate(frame)},
        watermarks=Watermarks(found=(mark,) if dice.random() < MARKED else ()),
    )


def _row(shape: Shape, leak: float, audits: list[Audit]) -> str:
    aucs = [one[View.METADATA].auc for one in audits]
    told = [auc for auc in aucs if isinstance(auc, Estimate)]
    shares = [fmean(one.finding is finding for one in audits) for finding in Finding]
    alarms = fmean(any(v.finding is Finding.LEAKS for v in one.views) for one in audits)
    holds = [fmean(auc.low <= truth <= auc.high for auc in told) for truth in (leak, 0.5)]
    figures = " | ".join(f"{share:.1%}" for share in (*shares, alarms, *holds))
    return f"| {shape.name} | {leak:.1f} | {fmean(auc.value for auc in told):.3f} | {figures} |"


if __name__ == "__main__":
    main()
