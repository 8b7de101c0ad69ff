"""Curves of both runs as SVG: means over seeds with their 95 % intervals."""

import numpy as np
from scipy.stats import t as student

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 350, 250, 44, 12, 56, 44
COLOURS = {"trained": "#2563eb", "held-out": "#b45309", "quality": "#15803d"}
WORDS = {"trained": "trained", "held-out": "held-out", "quality": "true quality"}


def draw_curves(curves: list[dict], alarms: list[dict], *, n_steps: int) -> str:
    """Return one panel for each run; vertical lines are first alarms."""
    runs = list(dict.fromkeys(row["run"] for row in curves))
    parts = []
    for place, run in enumerate(runs):
        rows = [row for row in curves if row["run"] == run]
        first = [row["first alarm"] for row in alarms if row["run"] == run]
        panel = "".join(_panel(run, rows, [int(a) for a in first if a != ""], n_steps))
        parts.append(f'<g transform="translate({place * WIDTH},0)">{panel}</g>')
    wide = WIDTH * len(runs)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {HEIGHT}" role="img" '
        'font-family="system-ui, sans-serif" font-size="11" fill="#18181b">\n'
        "<title>Trained reward, held-out reward and true quality over the steps of both runs</title>\n"
        f'<rect width="{wide}" height="{HEIGHT}" fill="#ffffff"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _panel(run: str, rows: list[dict], first: list[int], n_steps: int) -> list[str]:
    def x(step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * step / (n_steps - 1)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(1.0, max(0.0, value))

    seeds = len({row["seed"] for row in rows})
    parts = [f'<text x="{LEFT}" y="16" font-size="13">{run} run, {seeds} seeds</text>']
    for value in (0, 0.25, 0.5, 0.75, 1):
        parts.append(
            f'<line x1="{LEFT}" y1="{y(value):.1f}" x2="{WIDTH - RIGHT}" y2="{y(value):.1f}" stroke="#e4e4e7"/>'
            f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>'
        )
    for step in range(0, n_steps, 10):
        parts.append(
            f'<text x="{x(step):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{step}</text>'
        )
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">step</text>')
    for alarm in first:
        parts.append(
            f'<line x1="{x(alarm):.1f}" y1="{TOP}" x2="{x(alarm):.1f}" y2="{HEIGHT - BOTTOM}" '
            'stroke="#a62a16" stroke-dasharray="3 3"/>'
        )
    for place, (name, colour) in enumerate(COLOURS.items()):
        middle, low, high = _bands(rows, name)
        steps = range(len(middle))
        edge = [f"{x(i):.1f},{y(high[i]):.1f}" for i in steps]
        edge += [f"{x(i):.1f},{y(low[i]):.1f}" for i in reversed(steps)]
        line = " ".join(f"{x(i):.1f},{y(middle[i]):.1f}" for i in steps)
        parts.append(f'<polygon points="{" ".join(edge)}" fill="{colour}" fill-opacity="0.15"/>')
        parts.append(
            f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        )
        left = LEFT + 90 * place
        parts.append(f'<rect x="{left}" y="32" width="14" height="4" fill="{colour}"/>')
        parts.append(f'<text x="{left + 18}" y="38">{WORDS[name]}</text>')
    return parts


def _bands(rows: list[dict], name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean and interval over seeds at each step."""
    seeds = sorted({int(row["seed"]) for row in rows})
    table = np.array([[float(r[name]) for r in rows if int(r["seed"]) == s] for s in seeds])
    middle = table.mean(axis=0)
    if len(seeds) == 1:
        return middle, middle, middle
    reach = student.ppf(0.975, len(seeds) - 1) * table.std(axis=0, ddof=1) / np.sqrt(len(seeds))
    return middle, middle - reach, middle + reach
