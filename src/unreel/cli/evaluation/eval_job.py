"""Implementation of `unreel eval`: resolve the recipe, and query and score one run per model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from unreel.cli.contacted_services import print_external_reviewers, print_model_servers
from unreel.cli.evaluation.eval_output import (
    EvalDryRunResult,
    FinishedEvalRun,
    StoppedEvalRun,
    print_eval_forecasts,
    print_eval_results,
)
from unreel.cli.options import parse_column_mapping, parse_condition_options
from unreel.cli.output import print_message
from unreel.cli.process_signals import (
    StopSignalReceived,
    add_resume_note_on_stop,
    limit_malloc_arenas,
)
from unreel.cli.progress import ProgressMeter
from unreel.core.errors import (
    InvalidSettingError,
    KeyRejectedError,
    UnreadableSourceError,
    UnreelError,
)
from unreel.core.settings import (
    EnvironmentSettings,
    read_environment_settings,
    read_storage_options,
)
from unreel.engine.location import require_conditional_puts, resolve_location
from unreel.engine.run import ALL_FAILURES
from unreel.engine.table import LanceTable
from unreel.evaluation.forecast import forecast_eval, open_temporary_clip_table
from unreel.evaluation.recipe import EvalRecipe, resolve_eval_recipe, validate_eval_recipe
from unreel.evaluation.run_job import EvalRun, evaluate
from unreel.evaluation.run_lookup import build_eval_run, find_run_location
from unreel.evaluation.scoring import score_run
from unreel.evaluation.stored_recipe import StoredRecipe, find_run_recipe
from unreel.media.access import require_sandbox_protection
from unreel.recipes.validation import drop_unset_keys
from unreel.reviewers.endpoint.servers import list_model_endpoints, require_server_listening

_OF_ONE_MODEL = (KeyRejectedError, InvalidSettingError, UnreadableSourceError)
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
    weak_cage: bool,
    accept_changed: bool,
    as_json: bool,
    **flags: Any,
) -> "partial[int]":
    """Send or forecast (`dry_run`) missing questions; return a printer that gives the exit status."""
    flags["condition"] = parse_condition_options(conditions, nframe=nframe, fps=fps)
    flags["mapping"] = parse_column_mapping(mapping) or None
    settings = read_environment_settings()
    if weak_cage:
        settings = replace(settings, weak_cage=1)
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
    print_model_servers([run.recipe.reviewer.model for run in runs], settings)
    print_external_reviewers([run.recipe.reviewer for run in runs], settings)
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


def _format_benchmark_path(path: Path, before: EvalRecipe) -> str:
    """Return the path of a run's benchmark: as typed if it is valid from here, else absolute."""
    typed = Path(before.benchmark)
    return before.benchmark if typed.exists() and typed.samefile(path) else str(path.resolve())


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
            models = f"{same.recipe.reviewer.model} and {recipe.reviewer.model}"
            setting, problem = "model", f"{models} would both be stored in {run.place.uri}"
            remedy = "Ask one of them in a call of its own, with --out"
            raise InvalidSettingError(setting, problem, remedy)
        runs[run.place.uri] = run
    return list(runs.values())


def _forecast_eval_runs(runs: Sequence[EvalRun], way: SharedEvalSettings) -> list[EvalDryRunResult]:
    foreseen = []
    with open_temporary_clip_table() as aside:
        for number, run in enumerate(runs, start=1):
            way.meter.begin(_format_run_progress_label(run, number, runs))
            forecast = forecast_eval(
                run,
                aside=aside,
                retry_failed=way.retry,
                callbacks=way.meter.callbacks(),
            )
            foreseen.append(EvalDryRunResult(run=run, forecast=forecast))
    return foreseen


def _evaluate_all_runs(
    runs: Sequence[EvalRun], way: SharedEvalSettings
) -> list[FinishedEvalRun | StoppedEvalRun]:
    results: list[FinishedEvalRun | StoppedEvalRun] = []
    for number, run in enumerate(runs, start=1):
        way.meter.begin(_format_run_progress_label(run, number, runs))
        try:
            results.append(
                _evaluate_and_score_run(run, way, surveyed=runs[0].clips if number > 1 else None)
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
    run: EvalRun, way: SharedEvalSettings, *, surveyed: LanceTable | None
) -> FinishedEvalRun:
    meter = way.meter

    def expect(part: str, due: int) -> None:
        if part == "answers" and due:
            _require_listening_model_server(run, way)
        meter.expect(part, due)

    with add_resume_note_on_stop(run.place.uri, meter):
        outcome = evaluate(
            run,
            engine=way.engine,
            retry_failed=way.retry,
            surveyed=surveyed,
            callbacks=replace(meter.callbacks(on_note=print_message), on_due=expect),
        )
        meter.tell("scoring")
        scores = score_run(run, mode=run.recipe.reviewer.parser)
    return FinishedEvalRun(run=run, outcome=outcome, cost_usd=meter.cost_usd, scores=scores)


def _require_listening_model_server(run: EvalRun, way: SharedEvalSettings) -> None:
    if way.engine != "local":
        return  # the requests are sent from other machines
    for contact in list_model_endpoints(
        [run.recipe.reviewer.model], key_hosts=way.settings.key_hosts
    ):
        require_server_listening(contact)
