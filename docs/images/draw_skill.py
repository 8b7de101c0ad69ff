"""Draws what raw means and the skill model find where cells are missing: `python docs/images/draw_skill.py`.

Synthetic answers from `benchmarks/skill_recovery.py`: strong reviewers were asked about convincing creators alone,
weak ones about crude ones. Writes skill-recovery.svg.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))

from skill_recovery import World, draw_answers, draw_truth, raw_means  # noqa: E402

from unreel.core.estimate import Estimate  # noqa: E402
from unreel.stats.skill_likelihood import SkillTermLayout  # noqa: E402
from unreel.stats.skill_model import estimate_skill_intervals  # noqa: E402

WIDTH, HEIGHT, GAP, TOP, LEFT = 350, 250, 20, 46, 48
BLUE, BROWN, GREY = "#2563eb", "#b45309", "#a1a1aa"
Points = Sequence[tuple[float, float, float, float]]
"""Truth, found, and both ends of the interval."""


def main() -> None:
    """Write the picture."""
    world = World(missing=True)
    rng = np.random.default_rng(0)
    truth = draw_truth(world, rng)
    answers = draw_answers(world, truth, rng)
    shape = SkillTermLayout(world.reviewers, world.creators)
    skills = estimate_skill_intervals(answers, shape)
    accuracy, fakeness = raw_means(answers, shape)
    panels = [
        ("Ability, by the model", "true ability", _with_ends(truth.ability, skills.ability), BLUE),
        ("Realism, by the model", "true realism", _with_ends(truth.realism, skills.realism), BLUE),
        (
            "Accuracy in percent, raw means",
            "true ability",
            _bare(truth.ability, 100 * accuracy),
            BROWN,
        ),
        (
            "Called real in percent, raw means",
            "true realism",
            _bare(truth.realism, 100 - 100 * fakeness),
            BROWN,
        ),
    ]
    parts = []
    for place, (title, below, points, colour) in enumerate(panels):
        x, y = LEFT + (place % 2) * (WIDTH + GAP + LEFT), TOP + (place // 2) * (HEIGHT + TOP + 30)
        parts.append(
            f'<g transform="translate({x},{y})">{_panel(title, below, points, colour)}</g>'
        )
    wide, high = 2 * (WIDTH + LEFT) + 2 * GAP, 2 * (HEIGHT + TOP + 30)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" font-family="sans-serif" font-size="12">'
    ground = f'<rect width="{wide}" height="{high}" fill="#ffffff"/>'
    (HERE / "skill-recovery.svg").write_text(
        "\n".join([head, ground, *parts, "</svg>", ""]), encoding="utf-8"
    )


def _with_ends(truth: np.ndarray, found: Sequence[object]) -> Points:
    return [
        (float(true), one.value, one.low, one.high)
        for true, one in zip(truth, found, strict=True)
        if isinstance(one, Estimate)
    ]


def _bare(truth: np.ndarray, found: np.ndarray) -> Points:
    return [(float(x), float(y), float(y), float(y)) for x, y in zip(truth, found, strict=True)]


def _panel(title: str, below: str, points: Points, colour: str) -> str:
    xs, lows, highs = ([point[i] for point in points] for i in (0, 2, 3))
    left, right, least, most = min(xs), max(xs), min(lows), max(highs)

    def place(x: float, y: float) -> tuple[float, float]:
        return 12 + (WIDTH - 24) * (x - left) / (right - left), (HEIGHT - 12) - (HEIGHT - 24) * (
            y - least
        ) / (most - least)

    parts = [
        f'<text x="0" y="-12" font-size="14">{title}</text>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="{GREY}"/>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT + 18}" text-anchor="middle">{below}</text>',
        f'<text x="-6" y="{HEIGHT - 8}" text-anchor="end">{least:.1f}</text>',
        f'<text x="-6" y="16" text-anchor="end">{most:.1f}</text>',
    ]
    for x, y, low, high in points:
        (at, middle), bottom, top = place(x, y), place(x, low)[1], place(x, high)[1]
        parts.append(
            f'<line x1="{at:.1f}" y1="{bottom:.1f}" x2="{at:.1f}" y2="{top:.1f}" stroke="{colour}"/>'
        )
        parts.append(f'<circle cx="{at:.1f}" cy="{middle:.1f}" r="4" fill="{colour}"/>')
    return "".join(parts)


if __name__ == "__main__":
    main()
