"""HTML page and table cells with the results of the guards of one reward log."""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from unreel.core.estimate import Estimate
from unreel.core.output_files import OutputDirectory
from unreel.pages.html_page import build_html_page, render_template
from unreel.rewards.guards.result import GuardResult, RewardGuardLimits
from unreel.rewards.guards.training_steps import TrainingStepSummary
from unreel.training.curve import draw_training_curve_svg

PAGE = "guards.html"
COLUMNS = ("guard", "alarm", "estimate", "interval", "limit", "n", "steps", "meaning")


def format_guard_cells(result: GuardResult) -> dict[str, str]:
    """Return the table cells with the result of one guard, by the names in `COLUMNS`."""
    cells = dict.fromkeys(COLUMNS, "") | {"guard": result.guard}
    estimate = result.estimate
    if not isinstance(estimate, Estimate):
        return cells | {"meaning": f"not measured: {estimate.why}"}
    last = "now" if result.alarm_step is None else str(result.alarm_step)
    return cells | {
        "alarm": f"step {result.alarm_step}" if result.alarm else "no",
        "estimate": f"{estimate.value:.3g}",
        "interval": f"{estimate.low:.3g} to {estimate.high:.3g} ({100 * estimate.level:.4g} %)",
        "limit": f"{result.limit:.3g}",
        "n": str(estimate.n),
        "steps": f"{result.since_step} to {last}",
        "meaning": result.meaning,
    }


def write_guard_page(
    results: Sequence[GuardResult],
    steps: Sequence[TrainingStepSummary],
    out: Path,
    *,
    title: str,
    limits: RewardGuardLimits,
) -> Path:
    """Write the HTML page with the guards of one log into the folder `out`, and return its path."""
    body = render_template(
        "unreel.rewards.guards:watch.html",
        title=title,
        n_steps=len(steps),
        guards=[format_guard_cells(result) for result in results],
        alarms=[result for result in results if result.alarm],
        n_measured=sum(isinstance(result.estimate, Estimate) for result in results),
        percent=f"{100 * limits.alpha:g}",
        curve=draw_reward_curves_svg(steps),
    )
    text = build_html_page(title=f"{title}: guards", body=body, styles=(), scripts=(), data={})
    return OutputDirectory(out, published=True).write(PAGE, text.encode())


def draw_reward_curves_svg(steps: Sequence[TrainingStepSummary]) -> Markup | None:
    """Return an SVG with the trained and held-out rewards over the steps; `None` without any."""
    moments = [
        {"step": step.step, "trained": step.value, "held-out": step.held_out}
        for step in steps
        if step.value is not None and step.held_out is not None
    ]
    if not moments:
        return None
    picture = draw_training_curve_svg(
        moments, ("trained", "held-out"), title="Rewards over the steps"
    )
    return Markup(picture)  # noqa: S704  numbers and words of ours
