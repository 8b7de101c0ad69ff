"""Training curve: the metrics of each step as a CSV table and an SVG plot."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import inf, isfinite
from typing import Any

from unreel.core.output_files import OutputDirectory

TABLE = "curve.csv"
PICTURE = "curve.svg"
LOSS = "loss"
HELD_OUT = "held-out loss"
_FIRST = ("step", "epoch", LOSS, HELD_OUT, "learning rate")
_WIDTH, _HEIGHT = 720, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 40, 44
_TICKS = 5
_COLOURS = ("#2563eb", "#b45309")
_MAX_POINTS = 600

Moment = Mapping[str, float]
"""Metrics at one step, by name; `step` is always present."""


@dataclass(frozen=True, slots=True)
class PlotAxis:
    """Axis of a plot: a linear mapping of values to pixel positions."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the position of `value` on the plot axis, in pixels."""
        fraction = (value - self.low) / (self.high - self.low)
        return self.start + fraction * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return the values at which the plot axis has labels."""
        return [self.low + (self.high - self.low) * i / (_TICKS - 1) for i in range(_TICKS)]


def write_training_curve(moments: Sequence[Moment], directory: OutputDirectory) -> None:
    """Write the training curve into `directory` as CSV and as SVG, replacing older files."""
    directory.write(TABLE, format_training_curve_csv(moments).encode())
    directory.write(PICTURE, draw_training_curve_svg(moments).encode())


def format_training_curve_csv(moments: Sequence[Moment]) -> str:
    """Format a training's metrics as CSV, one line per step; a missing value is an empty cell."""
    names = {name: None for moment in moments for name in moment}
    columns = [*_FIRST, *(name for name in names if name not in _FIRST)]
    out = io.StringIO()
    table: Any = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    table.writeheader()
    for moment in moments:
        table.writerow({name: f"{value:.8g}" for name, value in moment.items()})
    return out.getvalue()


def draw_training_curve_svg(
    moments: Sequence[Moment],
    names: Sequence[str] = (LOSS, HELD_OUT),
    title: str = "Loss over the steps of a training",
) -> str:
    """Draw the curves `names`, by default training and held-out loss, over the steps as SVG."""
    lines = {
        name: [(m["step"], m[name]) for m in moments if isfinite(m.get(name, inf))]
        for name in names
    }
    points = [point for line in lines.values() for point in line]
    if not points:
        return _format_svg_page(title, ['<text x="24" y="48">no step was taken yet</text>'])
    last, top = max(x for x, _ in points), max(y for _, y in points)
    across = PlotAxis(0, max(last, 1), _LEFT, _WIDTH - _RIGHT)
    up = PlotAxis(0, top if top > 0 else 1, _HEIGHT - _BOTTOM, _TOP)
    parts: list[str] = []
    for value in up.ticks():
        y = up(value)
        parts.append(
            f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#d4d4d8"/>'
        )
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:.3g}</text>')
    for value in sorted({round(tick) for tick in across.ticks()}):
        x = across(value)
        parts.append(
            f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{value:,}</text>'
        )
    parts.append(
        f'<text x="{(_LEFT + _WIDTH) / 2}" y="{_HEIGHT - 8}" text-anchor="middle">step</text>'
    )
    parts = [*parts]
    for number, (name, line) in enumerate(lines.items()):
        if line:
            parts += _draw_curve(number, name, _average_neighbouring_points(line), across, up)
    return _format_svg_page(title, parts)


def _draw_curve(
    number: int, name: str, line: Sequence[tuple[float, float]], axis: PlotAxis, up: PlotAxis
) -> list[str]:
    colour = _COLOURS[number]
    path = " ".join(f"{axis(x):.1f},{up(y):.1f}" for x, y in line)
    left = _LEFT + number * 150
    parts = [
        f'<rect x="{left}" y="14" width="14" height="4" fill="{colour}"/>',
        f'<text x="{left + 20}" y="20">{escape(name)}</text>',
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>',
    ]
    if name == HELD_OUT:
        parts += [
            f'<circle cx="{axis(x):.1f}" cy="{up(y):.1f}" r="3" fill="{colour}"/>' for x, y in line
        ]
    return parts


def _average_neighbouring_points(line: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Average neighbouring points, so that the plot of a long training has a limited number of points."""
    size = -(-len(line) // _MAX_POINTS)
    groups = [line[i : i + size] for i in range(0, len(line), size)]
    return [(g[-1][0], sum(y for _, y in g) / len(g)) for g in groups]


def _format_svg_page(title: str, parts: Sequence[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        'font-family="system-ui, sans-serif" font-size="12" fill="#18181b">\n'
        f"<title>{escape(title)}</title>\n"
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>\n{body}\n</svg>\n'
    )
