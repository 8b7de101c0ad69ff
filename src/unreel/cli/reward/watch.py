"""`unreel reward watch`: search the log of a reward service for signs of reward hacking."""

import sys
from pathlib import Path

import click

from unreel.cli.output import echo, json_option, print_json, print_message, print_table


@click.command()
@click.argument("log", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Output folder for a page with the curves. Without it, no page is written.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Maximum probability of any alarm in a training without reward hacking.",
)
@json_option
def watch(*, log: Path, out: Path | None, alpha: float, as_json: bool) -> None:
    """Search LOG, written by `unreel reward serve --log`, for signs of reward hacking.

    Exits with status 1 if a guard raises an alarm.
    """
    from unreel.rewards.guards.evaluate import evaluate_guards_on_steps
    from unreel.rewards.guards.page import COLUMNS, format_guard_cells, write_guard_page
    from unreel.rewards.guards.result import RewardGuardLimits
    from unreel.rewards.guards.training_steps import TrainingStepCollector, iter_reward_log_rows

    settings, collector = RewardGuardLimits(alpha=alpha), TrainingStepCollector()
    collector.add(iter_reward_log_rows(log))
    steps = collector.finish()
    results = evaluate_guards_on_steps(steps, settings)
    page = out and write_guard_page(results, steps, out, title=log.name, settings=settings)
    alarms = [result.guard for result in results if result.alarm]
    if as_json:
        print_json({"alarms": alarms, "n_steps": len(steps), "guards": results, "page": page})
    else:
        print_table(COLUMNS, map(format_guard_cells, results))
        if page:
            echo(page)
        if collector.n_late:
            print_message(f"{collector.n_late} rows came after their step was closed: excluded")
        print_message(f"alarms: {', '.join(alarms) or 'none'}")
    sys.exit(1 if alarms else 0)
