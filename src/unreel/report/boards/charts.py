"""Charts as Vega-Lite specifications. Colours are variables of the page, for light and dark mode.

A name such as `$--accent` is a variable of the style sheet; `charts.js` inserts its present value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unreel.core.estimate import Measured, Unmeasured

SHOWN = 6
"""Maximum number of entrants in one chart; the table next to it has all."""
SERIES = tuple(f"$--series-{number}" for number in range(SHOWN))
FLOORS = tuple(f"$--floor-{number}" for number in range(3))
_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_KINDS = {
    "reviewer": "$--accent",
    "creator": "$--accent",
    "baseline": "$--muted",
    "control": "$--muted",
    "people": "$--series-1",
}
_SHAPES = {
    "reviewer": "circle",
    "creator": "circle",
    "baseline": "square",
    "control": "square",
    "people": "diamond",
}
_TIGHT = 5
"""Maximum number of letters of a step's name on a narrow screen."""
_TIP = [{"field": "tip", "type": "nominal"}]
Spec = dict[str, Any]
Palette = Mapping[str, str]
"""Colour of each name, in the order of the legend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardChart:
    """Chart of a board as a Vega-Lite specification, with its title and its text description."""

    id: str
    title: str
    alt: str
    spec: Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartPoint:
    """One value of a chart, with the name of its entrant and its group."""

    who: str
    measured: Measured
    group: str = ""
    kind: str = "reviewer"

    def datum(self, *, places: int = 1) -> Mapping[str, Any] | None:
        """Return the value as a row of chart data; `None` if it is unmeasured."""
        if isinstance(self.measured, Unmeasured):
            return None
        estimate = self.measured
        ends = f"{estimate.low:.{places}f} to {estimate.high:.{places}f}"
        number = f"{estimate.value:.{places}f}, 95 % interval {ends}, n {estimate.n}"
        about = ", ".join(part for part in (self.who, self.group) if part)
        return {
            "who": self.who,
            "group": self.group,
            "kind": "baseline" if self.kind == "floor" else self.kind,
            "value": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
            "tip": f"{about}: {number}",
        }


def build_ranked_chart(
    points: Sequence[ChartPoint], *, title: str, domain: tuple[float, float], places: int
) -> Spec:
    """Build a chart with value and interval of each entrant, best first; kinds differ in colour and shape."""
    data = _build_chart_rows(points, places=places)
    order = list(dict.fromkeys(row["who"] for row in data))
    kinds = [kind for kind in _KINDS if any(row["kind"] == kind for row in data)]
    y = {"field": "who", "type": "nominal", "sort": order, "axis": {"title": None}}
    colour = {
        "field": "kind",
        "type": "nominal",
        "scale": {"domain": kinds, "range": [_KINDS[kind] for kind in kinds]},
        "legend": {"title": None},
    }
    shape = {
        "field": "kind",
        "type": "nominal",
        "scale": {"domain": kinds, "range": [_SHAPES[kind] for kind in kinds]},
        "legend": {"title": None},
    }
    encoding = {"y": y, "color": colour}
    return _build_chart_spec(
        data, _build_interval_layers(encoding, shape, title=title, domain=domain)
    ) | {"height": {"step": 24}}


def build_grouped_chart(
    points: Sequence[ChartPoint],
    palette: Palette,
    *,
    title: str,
    domain: tuple[float, float],
    places: int,
) -> Spec:
    """Build a chart with groups of lines: in each group one line per name of the palette."""
    data = _build_chart_rows(points, places=places)
    names = list(palette)
    groups = list(dict.fromkeys(row["group"] for row in data))
    encoding = {
        "y": {"field": "group", "type": "nominal", "sort": groups, "axis": {"title": None}},
        "yOffset": {"field": "who", "type": "nominal", "sort": names},
        "color": _build_color_encoding(palette),
    }
    step = 11 if len(names) > 1 else 22
    return _build_chart_spec(
        data, _build_interval_layers(encoding, None, title=title, domain=domain)
    ) | {"height": {"step": step, "for": "offset"}}


def build_stepped_chart(
    points: Sequence[ChartPoint], palette: Palette, *, steps: Sequence[str], title: str
) -> Spec:
    """Build lines over ordered `steps`, trusted text inserted unescaped, one for each palette name."""
    known = [point for point in points if not isinstance(point.measured, Unmeasured)]
    data = _offset_side_by_side(
        _build_chart_rows(known, places=1), palette, [list(steps).index(p.group) for p in known]
    )
    wide, tight = (
        "[" + ", ".join(f"'{name}'" for name in names) + "]"
        for names in (steps, [step[:_TIGHT] for step in steps])
    )
    x = {
        "field": "at",
        "type": "quantitative",
        "scale": {"domain": [-0.45, len(steps) - 0.55]},
        "axis": {
            "title": None,
            "grid": False,
            "values": list(range(len(steps))),
            "tickCount": len(steps),
            "labelExpr": f"(width < 360 ? {tight} : {wide})[datum.value]",
            "labelOverlap": False,
        },
    }
    y: Spec = {"type": "quantitative", "scale": {"domain": [0, 100]}, "title": title}
    line = {
        "mark": {"type": "line", "strokeWidth": 2, "opacity": 0.5},
        "encoding": {"x": x, "y": {"field": "value", **y}, "color": _build_color_encoding(palette)},
    }
    return _build_chart_spec(data, [line, *_build_vertical_layers(x, y, palette)]) | {"height": 300}


def build_stacked_chart(
    rows: Sequence[Mapping[str, Any]], *, order: Sequence[str], names: Sequence[str]
) -> Spec:
    """Build a chart of stacked percentages per entrant; `rows` have who, part, rank, share and tip."""
    colours = ["$--good", "$--warn", *SERIES[2:], *SERIES[:2]]
    bar = {
        "mark": {"type": "bar", "height": {"band": 0.62}},
        "encoding": {
            "y": {"field": "who", "type": "nominal", "sort": list(names), "axis": {"title": None}},
            "x": {
                "field": "share",
                "type": "quantitative",
                "stack": "zero",
                "scale": {"domain": [0, 100]},
                "title": "share of questions, %",
            },
            "color": {
                "field": "part",
                "type": "nominal",
                "scale": {
                    "domain": list(order),
                    "range": [colours[i % len(colours)] for i in range(len(order))],
                },
                "legend": {"title": None},
            },
            "order": {"field": "rank", "type": "quantitative"},
            "tooltip": _TIP,
        },
    }
    return _build_chart_spec(rows, [bar]) | {"height": {"step": 28}}


def build_calibration_chart(points: Sequence[ChartPoint], palette: Palette, *, title: str) -> Spec:
    """Build a chart of people's mean score for each score that a reviewer gave, with the diagonal."""
    known = [point for point in points if not isinstance(point.measured, Unmeasured)]
    data = _offset_side_by_side(
        _build_chart_rows(known, places=2), palette, [int(point.group) for point in known]
    )
    x = {
        "field": "at",
        "type": "quantitative",
        "scale": {"domain": [0.6, 5.4]},
        "axis": {"values": [1, 2, 3, 4, 5], "tickCount": 5, "format": "d"},
        "title": "score given",
    }
    y: Spec = {"type": "quantitative", "scale": {"domain": [1, 5]}, "title": title}
    diagonal = {
        "data": {"values": [{"at": 1, "value": 1}, {"at": 5, "value": 5}]},
        "mark": {"type": "line", "strokeDash": [4, 4], "color": "$--muted"},
        "encoding": {"x": x, "y": {"field": "value", **y}},
    }
    return _build_chart_spec(data, [diagonal, *_build_vertical_layers(x, y, palette)]) | {
        "height": 300
    }


def _offset_side_by_side(
    data: Sequence[Mapping[str, Any]], palette: Palette, at: Sequence[int]
) -> list[Mapping[str, Any]]:
    """Add horizontal positions to chart rows: side by side in each step, in palette order."""
    names = list(palette)
    spacing = 0.6 / max(1, len(names))
    middle = (len(names) - 1) / 2
    return [
        {**row, "at": step + spacing * (names.index(row["who"]) - middle)}
        for row, step in zip(data, at, strict=True)
    ]


def _build_vertical_layers(x: Spec, y: Spec, palette: Palette) -> list[Spec]:
    shared: Spec = {"x": x, "color": _build_color_encoding(palette)}
    rule = {
        "mark": {"type": "rule", "strokeWidth": 2},
        "encoding": {**shared, "y": {"field": "low", **y}, "y2": {"field": "high"}},
    }
    dot = {
        "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
        "encoding": {**shared, "y": y | {"field": "value"}, "tooltip": _TIP},
    }
    return [rule, dot]


def _build_interval_layers(
    encoding: Spec, shape: Spec | None, *, title: str, domain: tuple[float, float]
) -> list[Spec]:
    x: Spec = {"type": "quantitative", "scale": {"domain": list(domain)}, "title": title}
    rule = {
        "mark": {"type": "rule", "strokeWidth": 2.5, "opacity": 0.7},
        "encoding": {**encoding, "x": {"field": "low", **x}, "x2": {"field": "high"}},
    }
    dot = {
        "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
        "encoding": {**encoding, "x": {"field": "value", **x}, "tooltip": _TIP},
    }
    if shape is not None:
        dot["encoding"]["shape"] = shape
    return [rule, dot]


def _build_color_encoding(palette: Palette) -> Spec:
    return {
        "field": "who",
        "type": "nominal",
        "scale": {"domain": list(palette), "range": list(palette.values())},
        "legend": {"title": None},
    }


def _build_chart_rows(points: Sequence[ChartPoint], *, places: int) -> list[Mapping[str, Any]]:
    rows = (point.datum(places=places) for point in points)
    return [row for row in rows if row is not None]


def _build_chart_spec(rows: Sequence[Mapping[str, Any]], layers: Sequence[Spec]) -> Spec:
    return {
        "$schema": _SCHEMA,
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": list(rows)},
        "layer": list(layers),
    }
