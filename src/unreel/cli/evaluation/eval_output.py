"""Final output of `unreel eval`: results of one run or several runs, or forecasts of a dry run."""

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from unreel.cli.evaluation.scorecard_output import (
    build_condition_scorecard_rows,
    explain_empty_scorecards,
    format_metric_cell,
    print_answer_counts,
    print_condition_scorecards,
)
from unreel.cli.output import echo, format_rerun_command, print_json, print_message, print_table
from unreel.core.errors import UnreelError
from unreel.core.failure import parse_stored_failure
from unreel.core.question import Condition
from unreel.engine.progress import format_cost
from unreel.evaluation.forecast import CostForecast, EvalForecast
from unreel.evaluation.run_job import NEVER_PUT, EvalRun, EvalSummary
from unreel.evaluation.scoring import ConditionScore

_REJECTED_KEY: Final = (
    "failure_reason = 'key-rejected' OR "
    "(failure_reason = 'request-rejected' AND failure_detail LIKE 'status 401%')"
)
"""Filter of failures from a rejected key in answers of earlier releases, which stored them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedEvalRun:
    """An evaluation run of one model that is finished, with its outcome, cost and scores."""

    run: EvalRun
    outcome: EvalSummary
    cost_usd: float | None
    scores: Sequence[ConditionScore]

    @property
    def n_questions(self) -> int:
        """Return the number of questions of a run, over all conditions."""
        return sum(score.scorecard.n_questions for score in self.scores)

    @property
    def why_nothing(self) -> str:
        """Return the reason why a run measured nothing; "" if it measured something."""
        return explain_empty_scorecards([score.scorecard for score in self.scores])

    @property
    def failures(self) -> Mapping[str, int]:
        """Count the failed questions of a run by failure reason."""
        tally: Counter[str] = Counter()
        for score in self.scores:
            tally.update(score.scorecard.failures)
        return tally

    def status(self, fail_on_error: float) -> int:
        """Return the exit status of `unreel eval` for a run.

        The status is 2 if no clip could be read and no question was sent; 1 if nothing was measured, or
        the fraction of failed questions exceeds `fail_on_error`; 0 otherwise.
        """
        answers = self.outcome.answers
        if self.outcome.unreadable and not (answers.already + answers.done + answers.failed):
            return 2
        failed = sum(s.scorecard.n_questions - s.scorecard.n_answered for s in self.scores)
        return int(bool(self.why_nothing) or failed > fail_on_error * self.n_questions)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedEvalRun:
    """An evaluation run of one of several models that an error stopped, with the error."""

    run: EvalRun
    error: UnreelError


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalDryRunResult:
    """Result of a dry run: the planned evaluation run and its forecast. No question was sent."""

    run: EvalRun
    forecast: EvalForecast


def print_eval_results(
    results: Sequence[FinishedEvalRun | StoppedEvalRun], *, fail_on_error: float, as_json: bool
) -> int:
    """Print the result of each run; return the highest exit status."""
    done = [result for result in results if isinstance(result, FinishedEvalRun)]
    broken = [result for result in results if isinstance(result, StoppedEvalRun)]
    if as_json:
        documents = [_build_result_document(result) for result in results]
        print_json(documents if len(documents) > 1 else documents[0])
    elif len(results) == 1:
        _print_run_report(done[0])
        print_condition_scorecards(done[0].scores)
        _print_run_failures(done[0])
    else:
        _print_several_runs(done)
    for result in done:
        if reason := result.why_nothing:
            print_message(f"{result.outcome.reviewer}: {reason}")
    for stopped in broken:
        print_message(f"{stopped.run.recipe.reviewer.model}: {stopped.error}")
    return max([2 if broken else 0, *(result.status(fail_on_error) for result in done)])


def _build_result_document(result: FinishedEvalRun | StoppedEvalRun) -> dict[str, object]:
    if isinstance(result, StoppedEvalRun):
        model = result.run.recipe.reviewer.model
        return {"run": result.run.place.uri, "model": model, "problem": str(result.error)}
    document = {"outcome": result.outcome, "cost_usd": result.cost_usd}
    return {
        "run": result.run.place.uri,
        **document,
        "scores": build_condition_scorecard_rows(result.scores),
    }


def _print_run_report(done: FinishedEvalRun) -> None:
    outcome, answers = done.outcome, done.outcome.answers
    spent = "" if done.cost_usd is None else f", {format_cost(done.cost_usd)} spent on them"
    print_message(
        f"{outcome.reviewer}: {answers.done} new answers, {answers.failed} new failures{spent}, "
        f"{answers.already} kept from before; run in {done.run.place.uri}"
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


def _print_run_failures(done: FinishedEvalRun) -> None:
    """Print the first failure of a run for each reason, and the command that retries the failures."""
    if not done.failures:
        return
    name = done.outcome.reviewer
    for reason in done.failures:
        if (first := _find_first_failure_message(done.run, reason)) is not None:
            print_message(f"{name}, the first {first}")
    if n := done.run.answers.count(_REJECTED_KEY):
        print_message(f"{name}: {n:,} questions failed for a rejected key in an earlier call")
    if set(done.failures) - NEVER_PUT:
        print_message(f"Retry the failures: {format_rerun_command('--retry-failed')}")
    else:
        print_message(f"Send the remaining questions: {format_rerun_command()}")


def _find_first_failure_message(run: EvalRun, reason: str) -> str | None:
    if not run.answers.exists():
        return None
    quoted = reason.replace("'", "''")
    rows = run.answers.rows(
        ("failure_reason", "failure_detail"), where=f"failure_reason = '{quoted}'"
    )
    for row in rows:
        return str(parse_stored_failure(row["failure_reason"], row["failure_detail"]))
    return None


def _print_several_runs(done: Sequence[FinishedEvalRun]) -> None:
    for r in done:
        _print_run_report(r)
        for score in r.scores:
            print_answer_counts(score.scorecard)
        _print_run_failures(r)
    for condition in dict.fromkeys(s.condition for r in done for s in r.scores):
        print_message(f"condition: {condition}")
        _print_metrics_by_model(condition, done)
    if len(done) > 1:
        uris = [r.run.place.uri for r in done]
        print_message(f"Compare them: `{shlex.join(['unreel', 'compare', *uris])}`")
        print_message(
            f"Look at them: `{shlex.join(['unreel', 'report', *uris, '--out', 'report'])}`"
        )


def _print_metrics_by_model(condition: Condition, done: Sequence[FinishedEvalRun]) -> None:
    cells: dict[str, dict[str, object]] = {}
    names = [r.outcome.reviewer for r in done]
    for r in done:
        for score in r.scores:
            if score.condition != condition:
                continue
            for metric in score.scorecard.metrics:
                if ": " not in metric.name and metric.coverage.asked:
                    row = cells.setdefault(metric.name, dict.fromkeys(names, ""))
                    row[r.outcome.reviewer] = format_metric_cell(metric.value)
    rows = [{"metric": name, **row} for name, row in cells.items()]
    print_table(("metric", *names), rows)


def print_eval_forecasts(foreseen: Sequence[EvalDryRunResult], *, as_json: bool) -> int:
    """Print the questions, tokens and cost of each planned run; return exit status 0."""
    if as_json:
        documents = [
            {
                "run": r.run.place.uri,
                "forecast": r.forecast,
                "cost_usd": _compute_forecast_cost(r),
            }
            for r in foreseen
        ]
        print_json(documents if len(documents) > 1 else documents[0])
        return 0
    for r in foreseen:
        echo(*_iter_forecast_lines(r))
    print_message("Nothing was sent, and nothing was written")
    return 0


def _iter_forecast_lines(foreseen: EvalDryRunResult) -> Iterator[str]:
    forecast = foreseen.forecast
    clips = "1 clip" if forecast.n_clips == 1 else f"{forecast.n_clips:,} clips"
    yield (
        f"{forecast.reviewer}: {forecast.n_questions:,} questions about {clips}, "
        f"{forecast.n_answered:,} answered, {forecast.n_due:,} to ask; run in {foreseen.run.place.uri}"
    )
    if forecast.drawn is not None:
        yield f"  {forecast.drawn}"
    for reason, n in forecast.failed.items():
        yield f"  failed before: {n:,} {reason}, repeated only with --retry-failed"
    for reason, n in forecast.unreadable.items():
        yield f"  clips that cannot be shown: {n:,} {reason}"
    if forecast.n_rejected:
        yield f"  rows of the benchmark that cannot be used: {forecast.n_rejected:,}"
    if forecast.bill is None:
        yield "  no server is queried: no tokens, no cost"
    elif forecast.n_due:
        yield from _iter_cost_lines(forecast.bill)


def _iter_cost_lines(bill: CostForecast) -> Iterator[str]:
    tokens = "not known" if bill.input_tokens is None else f"about {bill.input_tokens:,} tokens"
    yield f"  shown: {bill.n_frames:,} frames"
    yield f"  sent: {tokens} ({bill.input_by})"
    yield f"  written: {bill.output_tokens:,} tokens ({bill.output_by})"
    if bill.input_usd is None or bill.output_usd is None:
        yield "  money: not known; name a file with the price of its tokens: --prices FILE"
    else:
        sent, written = (format_cost(float(cost)) for cost in (bill.input_usd, bill.output_usd))
        yield f"  money: {sent} for input, {written} for output"


def _compute_forecast_cost(foreseen: EvalDryRunResult) -> float | None:
    bill = foreseen.forecast.bill
    if bill is None or bill.input_usd is None or bill.output_usd is None:
        return None
    return float(bill.input_usd + bill.output_usd)
