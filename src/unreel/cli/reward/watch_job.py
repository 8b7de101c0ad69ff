"""Implementation of `unreel reward watch`, imported when it runs."""

from pathlib import Path

from unreel.cli.output import echo, print_json, print_message, print_table
from unreel.rewards.guards.evaluate import evaluate_steps
from unreel.rewards.guards.page import COLUMNS, format_guard, write_guard_page
from unreel.rewards.guards.result import GuardSettings
from unreel.rewards.guards.steps import StepCollector, read_log


def print_guards(
    log: Path, *, out: Path | None, last: int | None, alpha: float, as_json: bool
) -> int:
    """Print the result of each guard, and return 1 if one raises an alarm."""
    settings = GuardSettings(alpha=alpha)
    collector = StepCollector()
    collector.add(read_log(log, last_steps=last))
    steps = collector.finish()
    results = evaluate_steps(steps, settings)
    page = None
    if out is not None:
        page = write_guard_page(results, steps, out, title=log.name, settings=settings)
    alarms = [result.guard for result in results if result.alarm]
    if as_json:
        print_json({"alarms": alarms, "n_steps": len(steps), "guards": results, "page": page})
    else:
        print_table(COLUMNS, map(format_guard, results))
        if collector.n_late:
            print_message(
                f"{collector.n_late} rows arrived after their step was closed and are excluded"
            )
        if page is not None:
            echo(page)
        print_message(f"alarms: {', '.join(alarms) or 'none'}")
    return 1 if alarms else 0
