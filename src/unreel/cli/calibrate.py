"""`unreel calibrate`: measure the false alarms of models on real footage of your own."""

import sys
from typing import TYPE_CHECKING

import click

from unreel.api.passport import CalibrateSettings
from unreel.cli.options import settings_options
from unreel.cli.output import json_option, print_json, print_message, print_table
from unreel.cli.process_signals import add_resume_note_on_stop
from unreel.cli.progress import ProgressMeter

if TYPE_CHECKING:
    from unreel.evaluation.passport import FalseAlarmPassport
    from unreel.evaluation.run_job import EvalRun, EvalSummary


@click.command()
@settings_options(CalibrateSettings)
@json_option
def calibrate(settings: CalibrateSettings, *, as_json: bool) -> None:
    """Measure how often models call clips of ARCHIVE generated, which are all real.

    ARCHIVE is a folder of real footage, or a table of clips. The passport that is written tells `unreel review
    --passport FILE` how unusual a verdict is among your own clips. A second call asks only about new clips,
    also after kill -9. Exits with status 1 if a question has no readable answer.
    """
    from unreel.api import passport as api

    failures: list[str] = []

    def show_run(run: "EvalRun") -> None:
        meter.begin(f"{run.recipe.reviewer.model.partition('@')[0]}, {run.recipe.protocol}: ")

    def count_failures(run: "EvalRun", summary: "EvalSummary") -> None:
        n_failed = summary.answers.failed
        if n_failed or summary.unreadable:
            failures.append(
                f"{summary.reviewer}, {run.recipe.protocol}: {n_failed} questions failed, "
                f"{sum(summary.unreadable.values())} clips are not readable"
            )

    with ProgressMeter() as meter, add_resume_note_on_stop(str(settings.out), meter):
        passport = api.calibrate(
            settings, meter.callbacks(on_note=print_message), show_run, count_failures
        )
    if as_json:
        print_json(passport)
    else:
        print_table(
            ("reviewer", "protocol", "stratum", "clips", "alarms", "rate", "95 % interval"),
            api.list_passport_rows(passport),
        )
    _print_summary(passport)
    print_message(*failures, f"passport in {settings.out}")
    n_unanswered = sum(each.n_unanswered for each in passport.reviewers)
    sys.exit(1 if failures or n_unanswered else 0)


def _print_summary(passport: "FalseAlarmPassport") -> None:
    print_message(f"{passport.n_clips} different clips in {passport.archive}")
    if passport.n_repeated:
        print_message(f"{passport.n_repeated} files repeat the bytes of another and count once")
    for measured in passport.reviewers:
        if measured.n_unanswered:
            print_message(
                f"{measured.reviewer}, {measured.instrument}: {measured.n_unanswered} clips without a readable answer"
            )
