"""Implementation of `unreel eval`: resolve the recipe, query and score one run per model, print."""

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from unreel.api.contacts import describe_external_reviewers, describe_model_servers
from unreel.cli.evaluation.scorecard_output import (
    build_condition_scorecard_rows,
    explain_empty_scorecards,
    format_metric_cell,
    print_answer_counts,
    print_condition_scorecards,
)
from unreel.cli.options import parse_column_mapping, parse_condition_options
from unreel.cli.output import echo, format_rerun_command, print_json, print_message, print_table
from unreel.cli.process_signals import (
    StopSignalReceived,
    add_resume_note_on_stop,
    limit_malloc_arenas,
)
from unreel.cli.progress import ProgressMeter
from unreel.core.errors import (
    InvalidSettingError,
    KeyRejectedError,
    RequestsRejectedError,
    UnreadableSourceError,
    UnreelError,
)
from unreel.core.failure import parse_stored_failure
from unreel.core.question import Condition
from unreel.core.settings import (
    EnvironmentSettings,
    read_environment_settings,
    read_storage_options,
)
from unreel.engine.location import require_conditional_puts, resolve_location
from unreel.engine.progress import format_cost
from unreel.engine.run import ALL_FAILURES
from unreel.engine.table import LanceTable
from unreel.evaluation.forecast import QuestionForecast, forecast_eval, open_temporary_clip_table
from unreel.evaluation.recipe import EvalRecipe, resolve_eval_recipe, validate_eval_recipe
from unreel.evaluation.run_job import NOT_SENT, EvalRun, EvalSummary, evaluate
from unreel.evaluation.run_lookup import build_eval_run, find_run_location
from unreel.evaluation.scoring import ConditionScore, score_run
from unreel.evaluation.stored_recipe import StoredRecipe, find_run_recipe
from unreel.media.access import require_sandbox_protection
from unreel.recipes.validation import drop_unset_keys
from unreel.reviewers.endpoint.servers import list_model_endpoints, require_server_listening


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


def _print_run_report(finished_run: FinishedEvalRun) -> None:
    outcome, answers = finished_run.outcome, finished_run.outcome.answers
    spent = (
        ""
        if finished_run.cost_usd is None
        else f", {format_cost(finished_run.cost_usd)} spent on them"
    )
    print_message(
        f"{outcome.reviewer}: {answers.done} new answers, {answers.failed} new failures{spent}, "
        f"{answers.already} kept from before; run in {finished_run.run.place.uri}"
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


def _print_run_failures(finished_run: FinishedEvalRun) -> None:
    """Print the first failure of a run for each reason, and the command that retries the failures."""
    if not finished_run.failures:
        return
    name = finished_run.outcome.reviewer
    for reason in finished_run.failures:
        if (first := _find_first_failure_message(finished_run.run, reason)) is not None:
            print_message(f"{name}, the first {first}")
    if set(finished_run.failures) - NOT_SENT:
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


def _print_several_runs(finished_run: Sequence[FinishedEvalRun]) -> None:
    for r in finished_run:
        _print_run_report(r)
        for score in r.scores:
            print_answer_counts(score.scorecard)
        _print_run_failures(r)
    for condition in dict.fromkeys(s.condition for r in finished_run for s in r.scores):
        print_message(f"condition: {condition}")
        _print_metrics_by_model(condition, finished_run)
    if len(finished_run) > 1:
        uris = [r.run.place.uri for r in finished_run]
        print_message(f"Compare them: `{shlex.join(['unreel', 'compare', *uris])}`")
        print_message(
            f"Look at them: `{shlex.join(['unreel', 'report', *uris, '--out', 'report'])}`"
        )


def _print_metrics_by_model(condition: Condition, finished_run: Sequence[FinishedEvalRun]) -> None:
    cells: dict[str, dict[str, object]] = {}
    names = [r.outcome.reviewer for r in finished_run]
    for r in finished_run:
        for score in r.scores:
            if score.condition != condition:
                continue
            for metric in score.scorecard.metrics:
                if ": " not in metric.name and metric.coverage.asked:
                    row = cells.setdefault(metric.name, dict.fromkeys(names, ""))
                    row[r.outcome.reviewer] = format_metric_cell(metric.value)
    rows = [{"metric": name, **row} for name, row in cells.items()]
    print_table(("metric", *names), rows)


def print_eval_forecasts(
    forecasts: Sequence[tuple[EvalRun, QuestionForecast]], *, as_json: bool
) -> int:
    """Print the questions, tokens and cost of each planned run; return exit status 0."""
    if as_json:
        documents = []
        for run, forecast in forecasts:
            bill, cost_usd = forecast.bill, None
            if bill is not None and bill.input_usd is not None and bill.output_usd is not None:
                cost_usd = float(bill.input_usd + bill.output_usd)
            documents.append({"run": run.place.uri, "forecast": forecast, "cost_usd": cost_usd})
        print_json(documents if len(documents) > 1 else documents[0])
        return 0
    for run, forecast in forecasts:
        echo(*_iter_forecast_lines(run, forecast))
    print_message("Nothing was sent, and nothing was written")
    return 0


def _iter_forecast_lines(run: EvalRun, forecast: QuestionForecast) -> Iterator[str]:
    clips = "1 clip" if forecast.n_clips == 1 else f"{forecast.n_clips:,} clips"
    yield (
        f"{forecast.reviewer}: {forecast.n_questions:,} questions about {clips}, "
        f"{forecast.n_answered:,} answered, {forecast.n_due:,} to ask; run in {run.place.uri}"
    )
    if forecast.drawn is not None:
        yield f"  {forecast.drawn}"
    for reason, n in forecast.failed.items():
        yield f"  failed before: {n:,} {reason}, repeated only with --retry-failed"
    for reason, n in forecast.unreadable.items():
        yield f"  clips that cannot be shown: {n:,} {reason}"
    if forecast.n_rejected:
        yield f"  rows of the benchmark that cannot be used: {forecast.n_rejected:,}"
    bill = forecast.bill
    if bill is None:
        yield "  no server is queried: no tokens, no cost"
    elif forecast.n_due:
        tokens = "not known" if bill.input_tokens is None else f"about {bill.input_tokens:,} tokens"
        yield f"  shown: {bill.n_frames:,} frames"
        yield f"  sent: {tokens} ({bill.input_by})"
        yield f"  written: {bill.output_tokens:,} tokens ({bill.output_by})"
        if bill.input_usd is None or bill.output_usd is None:
            yield "  money: not known; name a file with the price of its tokens: --prices FILE"
        else:
            sent, written = (format_cost(float(cost)) for cost in (bill.input_usd, bill.output_usd))
            yield f"  money: {sent} for input, {written} for output"


_OF_ONE_MODEL = (
    KeyRejectedError,
    RequestsRejectedError,
    InvalidSettingError,
    UnreadableSourceError,
)
"""Errors that stop the run of one model among several; other errors stop all runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedEvalSettings:
    """Settings of `unreel eval` that are the same for all models."""

    engine: str
    retry_failed: bool
    settings: EnvironmentSettings
    meter: ProgressMeter

    @property
    def retry(self) -> frozenset[str]:
        """Return the reasons of failed questions to retry: all with `retry_failed`, otherwise none."""
        return ALL_FAILURES if self.retry_failed else frozenset()


def evaluate_models(  # noqa: PLR0913  one parameter for each option
    meter: ProgressMeter,
    *,
    models: tuple[str, ...],
    recipe: Path | None,
    conditions: tuple[str, ...],
    nframe: int | None,
    fps: str | None,
    mapping: tuple[str, ...],
    out: str | None,
    engine: str,
    retry_failed: bool,
    fail_on_error: float,
    dry_run: bool,
    trusted: bool,
    outside: bool,
    accept_changed: bool,
    as_json: bool,
    **flags: Any,
) -> "partial[int]":
    """Send or forecast (`dry_run`) missing questions; return a printer that gives the exit status."""
    flags["condition"] = parse_condition_options(conditions, nframe=nframe, fps=fps)
    flags["mapping"] = parse_column_mapping(mapping) or None
    settings = read_environment_settings()
    named = tuple(dict.fromkeys(models)) or (None,)
    recipes = [
        _resolve_eval_recipe(recipe, flags | {"model": model}, out, settings) for model in named
    ]
    limit_malloc_arenas()
    require_sandbox_protection(settings, trusted=trusted)
    ways = {"trusted": trusted, "outside": outside, "accept_changed": accept_changed}
    runs = _plan_eval_runs(recipes, out, settings, ways)
    way = SharedEvalSettings(
        engine=engine, retry_failed=retry_failed, settings=settings, meter=meter
    )
    if dry_run:
        return partial(print_eval_forecasts, _forecast_eval_runs(runs, way), as_json=as_json)
    names = [run.recipe.reviewer.model for run in runs]
    print_message(*describe_model_servers(names, settings))
    print_message(*describe_external_reviewers([run.recipe.reviewer for run in runs], settings))
    for run in runs:
        require_conditional_puts(run.place)  # before the longer wait for a table there
        if not run.answers.exists():
            _require_listening_model_server(run, way)
    if len(runs) > 1:
        runs[0].benchmark()  # report its errors once, and not for each model
    results = _evaluate_all_runs(runs, way)
    return partial(print_eval_results, results, fail_on_error=fail_on_error, as_json=as_json)


def _resolve_eval_recipe(
    file: Path | None, flags: Mapping[str, Any], out: str | None, settings: EnvironmentSettings
) -> EvalRecipe:
    """Return the recipe of `file` and `flags`, or of the run `out` if neither names a benchmark."""
    if file is None and flags["benchmark"] is None and out is not None:
        run = resolve_location(out, read_storage_options(settings))
        stored = find_run_recipe(run)
        if isinstance(stored, StoredRecipe):
            reference = stored.benchmark
            lies = (
                {}
                if reference is None
                else {"benchmark": _format_benchmark_path(reference.find(run), stored.recipe)}
            )
            return validate_eval_recipe(stored.recipe.stored() | lies | drop_unset_keys(flags))
    return resolve_eval_recipe(file, flags)


def _format_benchmark_path(path: Path, earlier_recipe: EvalRecipe) -> str:
    """Return the path of a run's benchmark: as typed if it is valid from here, else absolute."""
    typed = Path(earlier_recipe.benchmark)
    return (
        earlier_recipe.benchmark if typed.exists() and typed.samefile(path) else str(path.resolve())
    )


def _plan_eval_runs(
    recipes: Sequence[EvalRecipe],
    out: str | None,
    settings: EnvironmentSettings,
    ways: Mapping[str, bool],
) -> list[EvalRun]:
    """Plan a run for each recipe: one recipe at `out`, several in subfolders of `out`."""
    if len(recipes) == 1:
        return [build_eval_run(recipes[0], out, settings, **ways)]
    runs: dict[str, EvalRun] = {}
    for recipe in recipes:
        below = None if out is None else find_run_location(recipe, out.rstrip("/"), settings)
        run = build_eval_run(recipe, below, settings, **ways)
        if (same := runs.get(run.place.uri)) is not None:
            raise InvalidSettingError(
                "model",
                f"{same.recipe.reviewer.model} and {recipe.reviewer.model} would both be stored in {run.place.uri}",
                "Ask one of them in a call of its own, with --out",
            )
        runs[run.place.uri] = run
    return list(runs.values())


def _forecast_eval_runs(
    runs: Sequence[EvalRun], settings: SharedEvalSettings
) -> list[tuple[EvalRun, QuestionForecast]]:
    forecasts = []
    with open_temporary_clip_table() as aside:
        for number, run in enumerate(runs, start=1):
            settings.meter.begin(_format_run_progress_label(run, number, runs))
            forecast = forecast_eval(
                run, aside=aside, retry_failed=settings.retry, callbacks=settings.meter.callbacks()
            )
            forecasts.append((run, forecast))
    return forecasts


def _evaluate_all_runs(
    runs: Sequence[EvalRun], settings: SharedEvalSettings
) -> list[FinishedEvalRun | StoppedEvalRun]:
    results: list[FinishedEvalRun | StoppedEvalRun] = []
    for number, run in enumerate(runs, start=1):
        settings.meter.begin(_format_run_progress_label(run, number, runs))
        try:
            results.append(
                _evaluate_and_score_run(
                    run, settings, facts_table=runs[0].clips if number > 1 else None
                )
            )
        except _OF_ONE_MODEL as error:
            if len(runs) == 1:
                raise
            results.append(StoppedEvalRun(run=run, error=error))
        except (StopSignalReceived, UnreelError) as stopped:
            for result in results:
                stopped.add_note(
                    f"{result.run.recipe.reviewer.model}: kept in {result.run.place.uri}"
                )
            raise
    return results


def _format_run_progress_label(run: EvalRun, number: int, runs: Sequence[EvalRun]) -> str:
    if len(runs) == 1:
        return ""
    return f"{number} of {len(runs)}, {run.recipe.reviewer.model.partition('@')[0]}: "


def _evaluate_and_score_run(
    run: EvalRun, settings: SharedEvalSettings, *, facts_table: LanceTable | None
) -> FinishedEvalRun:
    meter = settings.meter

    def expect(part: str, due: int) -> None:
        if part == "answers" and due:
            _require_listening_model_server(run, settings)
        meter.expect(part, due)

    with add_resume_note_on_stop(run.place.uri, meter):
        outcome = evaluate(
            run,
            engine=settings.engine,
            retry_failed=settings.retry,
            facts_table=facts_table,
            callbacks=replace(meter.callbacks(on_note=print_message), on_due=expect),
        )
        meter.tell("scoring")
        scores = score_run(run, mode=run.recipe.reviewer.parser)
    return FinishedEvalRun(run=run, outcome=outcome, cost_usd=meter.cost_usd, scores=scores)


def _require_listening_model_server(run: EvalRun, settings: SharedEvalSettings) -> None:
    if settings.engine != "local":
        return  # the requests are sent from other machines
    for contact in list_model_endpoints(
        [run.recipe.reviewer.model], key_hosts=settings.settings.key_hosts
    ):
        require_server_listening(contact)
