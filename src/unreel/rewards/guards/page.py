"""Page and table of the guards of one log."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from markupsafe import Markup

from unreel.core.estimate import Estimate
from unreel.core.output_files import OutputDirectory
from unreel.pages.page import build_html_page, render_template
from unreel.rewards.guards.result import GuardResult, GuardSettings
from unreel.rewards.guards.steps import StepSummary
from unreel.training.curve import PlotAxis

PAGE: Final = "guards.html"
COLUMNS: Final = ("guard", "alarm", "estimate", "interval", "limit", "n", "steps", "meaning")
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 720, 300, 48, 40, 32
_COLOURS: Final = {"trained": "#2563eb", "held-out": "#b45309"}


def format_guard(result: GuardResult) -> dict[str, str]:
    """Return the cells of one guard by `COLUMNS`."""
    cells = dict.fromkeys(COLUMNS, "") | {"guard": result.guard}
    estimate = result.estimate
    if not isinstance(estimate, Estimate):
        return cells | {"meaning": f"not measured: {estimate.why}"}
    last = "now" if result.alarm_step is None else str(result.alarm_step)
    return cells | {
        "alarm": f"step {result.alarm_step}" if result.alarm else "no",
        "estimate": f"{estimate.value:.3g}",
        "interval": f"{estimate.low:.3g} to {estimate.high:.3g}",
        "limit": f"{result.limit:.3g}",
        "n": str(estimate.n),
        "steps": f"{result.since_step} to {last}",
        "meaning": result.meaning,
    }


def write_guard_page(
    results: Sequence[GuardResult],
    steps: Sequence[StepSummary],
    out: Path,
    *,
    title: str,
    settings: GuardSettings,
) -> Path:
    """Write the page of a log into the folder `out` and return its path."""
    body = render_template(
        "unreel.rewards.guards:watch.html",
        title=title,
        n_steps=len(steps),
        guards=[format_guard(result) for result in results],
        alarms=[result for result in results if result.alarm],
        percent=f"{100 * settings.alpha:g}",
        curve=draw_rewards(steps),
    )
    text = build_html_page(title=f"{title}: guards", body=body, styles=(), scripts=(), data={})
    return OutputDirectory(out, published=True).write(PAGE, text.encode())


def draw_rewards(steps: Sequence[StepSummary]) -> Markup | None:
    """Return an SVG of trained and held-out rewards over the steps; `None` without such rewards."""
    paired = [step for step in steps if step.value is not None and step.held_out is not None]
    if not paired:
        return None
    across = PlotAxis(paired[0].step, max(paired[-1].step, paired[0].step + 1), _LEFT, _WIDTH - 16)
    up = PlotAxis(0.0, 1.0, _HEIGHT - _BOTTOM, _TOP)
    text = '<text x="{:.1f}" y="{:.1f}" text-anchor="{}" fill="currentColor">{}</text>'
    parts = [text.format(_LEFT - 8, up(value) + 4, "end", f"{value:g}") for value in (0, 0.5, 1)]
    parts += [
        text.format(across(step), _HEIGHT - _BOTTOM + 18, "middle", step)
        for step in sorted({round(tick) for tick in across.ticks()})
    ]
    parts.append(text.format(_WIDTH / 2, _HEIGHT - 6, "middle", "step"))
    series = {
        "trained": [step.value or 0.0 for step in paired],
        "held-out": [step.held_out or 0.0 for step in paired],
    }
    for place, (name, values) in enumerate(series.items()):
        points = " ".join(
            f"{across(step.step):.1f},{up(min(1.0, max(0.0, value))):.1f}"
            for step, value in zip(paired, values, strict=True)
        )
        colour = _COLOURS[name]
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
        left = _LEFT + 120 * place
        parts.append(f'<rect x="{left}" y="10" width="14" height="4" fill="{colour}"/>')
        parts.append(text.format(left + 20, 16, "start", name))
    drawing = "\n".join(parts)
    return Markup(  # noqa: S704  numbers and words of ours
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="Rewards over the steps" '
        f'font-size="12">\n{drawing}\n</svg>'
    )
