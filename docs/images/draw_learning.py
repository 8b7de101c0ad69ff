"""Draws how a tiny model learned: `python docs/images/draw_learning.py TRAINED`, the folder of its training.

Writes learning.csv, the looks at held-out clips of the scenes it learns on, and learning.svg, a picture of them.
"""

import csv
import sys
from pathlib import Path

HERE = Path(__file__).parent
COLOURS = {"accuracy": "#2563eb", "box-iou": "#b45309", "time-distance": "#15803d"}
WORDS = {"accuracy": "accuracy", "box-iou": "box IoU", "time-distance": "time distance"}
COLUMNS = ("step", "loss", "held-out loss", *COLOURS)
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 320, 48, 16, 40, 44


def main() -> None:
    """Write the table and the picture."""
    with (Path(sys.argv[1]) / "curve.csv").open(encoding="utf-8", newline="") as file:
        steps = list(csv.DictReader(file))
    looks = [
        {name: row.get(name) or row.get(f"trace {name}", "") for name in COLUMNS}
        for row in steps
        if row["trace accuracy"]
    ]
    with (HERE / "learning.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(looks)
    (HERE / "learning.svg").write_text(draw(looks), encoding="utf-8")


def draw(looks: list[dict[str, str]]) -> str:
    """Three figures in percent over the steps."""
    last = max(float(look["step"]) for look in looks)

    def place(step: float, percent: float) -> tuple[float, float]:
        x = LEFT + (WIDTH - LEFT - RIGHT) * step / last
        return x, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * percent / 100

    parts = []
    for percent in range(0, 101, 20):
        y = place(0, percent)[1]
        parts.append(
            f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#d4d4d8"/>'
        )
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{percent}</text>')
    for look in looks:
        x = place(float(look["step"]), 0)[0]
        parts.append(
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{look["step"]}</text>'
        )
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">step</text>')
    for index, (name, colour) in enumerate(COLOURS.items()):
        points = [place(float(look["step"]), float(look[name])) for look in looks]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        left = LEFT + 150 * index
        parts.append(f'<rect x="{left}" y="14" width="14" height="4" fill="{colour}"/>')
        parts.append(f'<text x="{left + 20}" y="20">{WORDS[name]}, percent</text>')
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        )
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'font-family="system-ui, sans-serif" font-size="12" fill="#18181b">\n'
        "<title>Accuracy, box IoU and time distance over the steps of a training</title>\n"
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


if __name__ == "__main__":
    main()
