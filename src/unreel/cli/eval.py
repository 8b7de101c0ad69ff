"""`unreel eval`: evaluate models on a benchmark."""

import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from unreel.api import evaluation as api
from unreel.cli.options import settings_options
from unreel.cli.output import (
    echo,
    format_rerun_command,
    json_option,
    print_json,
    print_message,
    print_table,
)
from unreel.cli.process_signals import (
    StopSignalReceived,
    add_resume_note_on_stop,
    limit_malloc_arenas,
)
from unreel.cli.progress import ProgressMeter
from unreel.cli.scorecards import (
    build_condition_scorecard_rows,
    build_published_document,
    explain_empty_scorecards,
    format_metric_cell,
    print_answer_counts,
    print_condition_scorecards,
    print_published_results,
)
from unreel.core.errors import (
    InvalidSettingError,
    KeyRejectedError,
    RequestsRejectedError,
    UnreadableSourceError,
    UnreelError,
)
from unreel.core.question import Condition
from unreel.engine.progress import format_cost

if TYPE_CHECKING:
    from collections.abc import Callable

    from unreel.evaluation.forecast import QuestionForecast
    from unreel.evaluation.run_job import EvalRun, EvalSummary
    from unreel.evaluation.scoring import ConditionScore

_OF_ONE_MODEL = (
    KeyRejectedError,
    RequestsRejectedError,
    InvalidSettingError,
    UnreadableSourceError,
)
"""Errors that stop the run of one model among several; other errors stop all runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """Run of one model that is finished, with its outcome, cost and scores."""

    run: "EvalRun"
    outcome: "EvalSummary"
    cost_usd: float | None
    scores: "Sequence[ConditionScore]"

    @property
    def empty_reason(self) -> str:
        """Return the reason why the run measured nothing; "" if it measured something."""
        return explain_empty_scorecards([score.scorecard for score in self.scores])

    @property
    def failures(self) -> Mapping[str, int]:
        """Return the number of failed questions for each failure reason."""
        counts: Counter[str] = Counter()
        for score in self.scores:
            counts.update(score.scorecard.failures)
        return counts

    def get_exit_status(self, fail_on_error: float) -> int:
        """Return the exit status of `unreel eval` for this run.

        The status is 2 if no clip could be read and no question was sent; 1 if nothing was measured, or
        the fraction of failed questions exceeds `fail_on_error`; 0 otherwise.
        """
        answers = self.outcome.answers
        if self.outcome.unreadable and not (answers.already + answers.done + answers.failed):
            return 2
        cards = [score.scorecard for score in self.scores]
        n_questions = sum(card.n_questions for card in cards)
        n_failed = n_questions - sum(card.n_answered for card in cards)
        return int(bool(self.empty_reason) or n_failed > fail_on_error * n_questions)


@click.command("eval")
@settings_options(api.EvalSettings)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the number of questions and tokens, and with --prices the estimated cost. Send nothing.",
)
@click.option(
    "--fail-on-error",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="Maximum fraction of failed questions for exit status 0. With more failures, the status is 1.",
)
@json_option
def eval_(
    settings: api.EvalSettings, *, dry_run: bool, fail_on_error: float, as_json: bool
) -> None:
    """Evaluate models on a benchmark: send every question, store the answers and score them.

    BENCHMARK is a folder or a table of clips with their ground truth; clips may be at s3:// locations. It
    can also be the name of a benchmark that `unreel benchmarks get` downloaded: the catalogue then gives
    the protocol, prompt, frames and split, unless you do.
    A second call with the same --out sends only the questions without an answer, also after kill -9;
    `unreel eval --out RUN` alone continues RUN with its own settings.
    """
    evaluate_and_print(settings, dry_run=dry_run, fail_on_error=fail_on_error, as_json=as_json)


def evaluate_and_print(
    settings: api.EvalSettings, *, dry_run: bool = False, fail_on_error: float = 0.0, as_json: bool
) -> None:
    """Evaluate the models, print the results, and exit the process."""
    results: dict[int, FinishedRun] = {}
    errors: dict[int, UnreelError] = {}
    with ProgressMeter() as meter:
        meter.tell("getting ready")
        if not dry_run:
            api.require_model_keys(settings.models)
        limit_malloc_arenas()
        runs = api.plan_runs(settings, print_message)

        def show_run(number: int, run: "EvalRun") -> None:
            model = run.recipe.reviewer.model.partition("@")[0]
            meter.begin("" if len(runs) == 1 else f"{number} of {len(runs)}, {model}: ")

        if dry_run:
            forecasts = api.forecast_runs(runs, settings, meter.callbacks(), show_run)
        else:
            forecasts = []
            print_message(*api.describe_contacts(runs))
            api.require_ready(runs, engine=settings.engine)
            _evaluate_runs(settings, runs, meter, show_run, results, errors)
    if dry_run:
        _print_forecasts(runs, forecasts, as_json=as_json)
        sys.exit(0)
    if as_json:
        documents = [
            _build_result_document(run, results.get(id(run)), errors.get(id(run))) for run in runs
        ]
        print_json(documents if len(documents) > 1 else documents[0])
    elif len(runs) == 1:
        (result,) = results.values()
        _print_run_report(result)
        print_condition_scorecards(result.scores)
        print_published_results(result.run, result.scores)
        _print_run_failures(result)
    else:
        _print_several_runs([*results.values()])
    for result in results.values():
        if reason := result.empty_reason:
            print_message(f"{result.outcome.reviewer}: {reason}")
    for run in runs:
        if (error := errors.get(id(run))) is not None:
            print_message(f"{run.recipe.reviewer.model}: {error}")
    statuses = [result.get_exit_status(fail_on_error) for result in results.values()]
    sys.exit(max([2 if errors else 0, *statuses]))


def _evaluate_runs(
    settings: api.EvalSettings,
    runs: "Sequence[EvalRun]",
    meter: ProgressMeter,
    show_run: "Callable[[int, EvalRun], None]",
    results: dict[int, FinishedRun],
    errors: dict[int, UnreelError],
) -> None:
    """Evaluate and score the runs one after the other; add results and errors by the run's `id`."""
    callbacks = meter.callbacks(on_note=print_message)
    for number, run in enumerate(runs, start=1):
        show_run(number, run)
        try:
            with add_resume_note_on_stop(run.place.uri, meter):
                facts_table = runs[0].clips if number > 1 else None
                outcome = api.evaluate_run(run, settings, callbacks, facts_table=facts_table)
                meter.tell("scoring")
                scores = api.score_run(run)
            results[id(run)] = FinishedRun(
                run=run, outcome=outcome, cost_usd=meter.cost_usd, scores=scores
            )
        except _OF_ONE_MODEL as error:
            if len(runs) == 1:
                raise
            errors[id(run)] = error
        except (StopSignalReceived, UnreelError) as stopped:
            for earlier in runs[: number - 1]:
                stopped.add_note(f"{earlier.recipe.reviewer.model}: kept in {earlier.place.uri}")
            raise


def _build_result_document(
    run: "EvalRun", result: FinishedRun | None, error: UnreelError | None
) -> dict[str, object]:
    if result is None:
        model = run.recipe.reviewer.model
        return {"run": run.place.uri, "model": model, "problem": str(error)}
    return {
        "run": run.place.uri,
        "outcome": result.outcome,
        "cost_usd": result.cost_usd,
        "scores": build_condition_scorecard_rows(result.scores),
        **build_published_document(run, result.scores),
    }


def _print_run_report(result: FinishedRun) -> None:
    outcome, answers = result.outcome, result.outcome.answers
    cost = "" if result.cost_usd is None else f", {format_cost(result.cost_usd)} spent on them"
    print_message(
        f"{outcome.reviewer}: {answers.done} new answers, {answers.failed} new failures{cost}, "
        f"{answers.already} kept from before; run in {result.run.place.uri}"
    )
    if outcome.drawn is not None:
        print_message(f"  {outcome.drawn}")
    for reason, n in {**answers.failures, **outcome.unreadable}.items():
        print_message(f"  failed: {n} {reason}")
    if outcome.first_unreadable:
        print_message(f"  the first clip that cannot be read is {outcome.first_unreadable}")
    if outcome.n_rejected:
        first = outcome.rejected[0]
        print_message(
            f"  {outcome.n_rejected} rows of the benchmark cannot be used, the first is {first}"
        )


def _print_run_failures(result: FinishedRun) -> None:
    """Print the first failure of a run for each reason, and the command that retries the failures."""
    reasons = [*result.failures]
    if not reasons:
        return
    for failure in api.find_first_failures(result.run, reasons).values():
        print_message(f"{result.outcome.reviewer}, the first {failure}")
    if set(reasons) - api.list_unsent_reasons():
        print_message(f"Retry the failures: {format_rerun_command('--retry-failed')}")
    else:
        print_message(f"Send the remaining questions: {format_rerun_command()}")


def _print_several_runs(results: Sequence[FinishedRun]) -> None:
    for result in results:
        _print_run_report(result)
        for score in result.scores:
            print_answer_counts(score.scorecard)
        print_published_results(result.run, result.scores)
        _print_run_failures(result)
    for condition in dict.fromkeys(s.condition for result in results for s in result.scores):
        print_message(f"condition: {condition}")
        _print_metrics_by_model(condition, results)
    if len(results) > 1:
        uris = [result.run.place.uri for result in results]
        print_message(f"Compare them: `{shlex.join(['unreel', 'compare', *uris])}`")
        print_message(
            f"Look at them: `{shlex.join(['unreel', 'report', *uris, '--out', 'report'])}`"
        )


def _print_metrics_by_model(condition: Condition, results: Sequence[FinishedRun]) -> None:
    cells: dict[str, dict[str, object]] = {}
    names = [result.outcome.reviewer for result in results]
    for result in results:
        cards = [score.scorecard for score in result.scores if score.condition == condition]
        for metric in (metric for card in cards for metric in card.metrics):
            if ": " not in metric.name and metric.coverage.asked:
                row = cells.setdefault(metric.name, dict.fromkeys(names, ""))
                row[result.outcome.reviewer] = format_metric_cell(metric.value)
    print_table(("metric", *names), [{"metric": name, **row} for name, row in cells.items()])


def _print_forecasts(
    runs: "Sequence[EvalRun]", forecasts: "Sequence[QuestionForecast]", *, as_json: bool
) -> None:
    if as_json:
        documents = []
        for run, forecast in zip(runs, forecasts, strict=True):
            bill, cost_usd = forecast.bill, None
            if bill is not None and bill.input_usd is not None and bill.output_usd is not None:
                cost_usd = float(bill.input_usd + bill.output_usd)
            documents.append({"run": run.place.uri, "forecast": forecast, "cost_usd": cost_usd})
        print_json(documents if len(documents) > 1 else documents[0])
        return
    for run, forecast in zip(runs, forecasts, strict=True):
        echo(*_format_forecast(run, forecast))
    print_message("Nothing was sent, and nothing was written")


def _format_forecast(run: "EvalRun", forecast: "QuestionForecast") -> list[str]:
    clips = "1 clip" if forecast.n_clips == 1 else f"{forecast.n_clips:,} clips"
    questions = f"{forecast.reviewer}: {forecast.n_questions:,} questions about {clips}"
    answered = f"{forecast.n_answered:,} answered, {forecast.n_due:,} to ask"
    lines = [f"{questions}, {answered}; run in {run.place.uri}"]
    if forecast.drawn is not None:
        lines.append(f"  {forecast.drawn}")
    for reason, n in forecast.failed.items():
        lines.append(f"  failed before: {n:,} {reason}, repeated only with --retry-failed")
    for reason, n in forecast.unreadable.items():
        lines.append(f"  clips that cannot be shown: {n:,} {reason}")
    if forecast.n_rejected:
        lines.append(f"  rows of the benchmark that cannot be used: {forecast.n_rejected:,}")
    bill = forecast.bill
    if bill is None:
        lines.append("  no server is queried: no tokens, no cost")
    elif forecast.n_due:
        tokens = "not known" if bill.input_tokens is None else f"about {bill.input_tokens:,} tokens"
        lines += [
            f"  shown: {bill.n_frames:,} frames",
            f"  sent: {tokens} ({bill.input_by})",
            f"  written: {bill.output_tokens:,} tokens ({bill.output_by})",
        ]
        if bill.input_usd is None or bill.output_usd is None:
            lines.append(
                "  money: not known; name a file with the price of its tokens: --prices FILE"
            )
        else:
            sent, written = (format_cost(float(cost)) for cost in (bill.input_usd, bill.output_usd))
            lines.append(f"  money: {sent} for input, {written} for output")
    return lines
