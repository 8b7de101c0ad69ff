"""Evaluation of models on a benchmark: the runs of `unreel eval`, planned, forecast and carried out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from unreel.api.public_benchmarks import (
    NamedBenchmark,
    apply_catalogue_settings,
    describe_choice,
    find_named_benchmark,
)
from unreel.api.shared_settings import (
    BenchmarkSettings,
    BoxSettings,
    EngineSettings,
    TrustSettings,
    parse_column_mapping,
    parse_condition,
)
from unreel.core.command_options import FILE, FOLDER, Option
from unreel.core.errors import InvalidSettingError
from unreel.core.registry import needs_extra
from unreel.core.settings import read_environment_settings, read_storage_options
from unreel.protocols.protocol import Mode
from unreel.reviewers.endpoint.servers import list_model_endpoints, require_server_listening
from unreel.reviewers.message_parts import Showing

if TYPE_CHECKING:
    from unreel.engine.progress import JobCallbacks
    from unreel.engine.table import LanceTable
    from unreel.evaluation.forecast import QuestionForecast
    from unreel.evaluation.recipe import EvalRecipe
    from unreel.evaluation.run_job import EvalRun, EvalSummary
    from unreel.evaluation.scoring import ConditionScore


@dataclass(frozen=True, kw_only=True)
class SamplingSettings:
    """Settings of the frames that a model sees."""

    nframe: Annotated[int | None, Option(low=1)] = None
    """Number of evenly spaced frames that the model sees; short for --condition sampling=uniform-N."""
    fps: str | None = None
    """Number of frames per second that the model sees; short for --condition sampling=fps-F."""

    def parse_conditions(self, texts: Sequence[str]) -> list[dict[str, str]] | None:
        """Parse `--condition`, with sampling from `--nframe` or `--fps` by default; `None` without options."""
        if self.nframe is not None and self.fps is not None:
            raise InvalidSettingError(
                "--nframe", "cannot be combined with --fps", "Give one of --nframe and --fps"
            )
        sampling: dict[str, str] = {}
        if self.nframe:
            sampling = {"sampling": f"uniform-{self.nframe}"}
        elif self.fps:
            sampling = {"sampling": f"fps-{self.fps}"}
        conditions = [sampling | parse_condition(text) for text in texts]
        return conditions or ([sampling] if sampling else None)


@dataclass(frozen=True, kw_only=True)
class ModelSettings(BoxSettings):
    """Settings of the questions to a model."""

    recorded: Annotated[str | None, Option(metavar="FILE")] = None
    """JSON Lines file with existing answers. `--model recorded` returns them instead of asking a model."""
    show: Showing | None = None
    """Form of the model input. frames: single frames; video: the same frames as one video, for models behind `unreel serve`; clip: the complete file.  [default: frames]"""
    prices: Annotated[str | None, Option(metavar="FILE")] = None
    """TOML file with the token prices of each model, from which the cost is computed."""
    deadline_s: Annotated[float | None, Option(name="--deadline")] = None
    """Timeout of one question in seconds, including retries.  [default: 120]"""


@dataclass(frozen=True, kw_only=True)
class ReviewSettings(BoxSettings, SamplingSettings, TrustSettings):
    """Settings of the review of single clips."""

    clips: Annotated[tuple[Path, ...], Option(is_argument=True, kind="clip")] = ()
    models: Annotated[tuple[str, ...], Option(name="--model", kind="model")] = ()
    """Model to ask: provider/name, provider/name@URL, local (the first model on this computer that sees pictures), local/FOLDER, recorded (see --recorded), or a baseline: coin, always-real, always-generated. Repeatable.  [default: none, only the file is examined]"""
    protocols: Annotated[tuple[str, ...], Option(name="--protocol", kind="clip protocol")] = ()
    """Protocol of the questions. trace: where, when and why a clip looks generated; realism: a score from 1 to 5; reality: real or generated; locate: every generated segment of a long clip. Repeatable.  [default: trace, realism]"""
    condition: Annotated[str | None, Option(metavar="NAME=VALUE,...")] = None
    """Input settings of the questions, separated by commas: sampling=PLAN, audio=on, watermark=removed, thinking=on|off, prompt=VARIANT."""
    parser: Mode = "lenient"
    """Parser of the answers. strict: accepts only the requested format; lenient: also accepts common variations."""
    recorded: Annotated[Path | None, FILE] = None
    """JSON Lines file with existing answers. `--model recorded` returns them instead of asking a model."""
    prices: Annotated[Path | None, FILE] = None
    """TOML file with the token prices of each model, from which the cost is computed."""
    deadline_s: Annotated[float | None, Option(name="--deadline")] = None
    """Timeout of one question in seconds, including retries.  [default: 120]"""
    show: Showing | None = None
    """Form of the model input. frames: single frames; video: the same frames as one video, for models behind `unreel serve`; clip: the complete file.  [default: frames]"""
    out: Annotated[Path | None, FOLDER] = None
    """Output folder for the page evidence.html, the video annotated.mp4, still images and result.json."""
    pdf: bool = False
    """Also write the page as evidence.pdf. Requires --out and Chromium."""
    runs: Annotated[tuple[str, ...], Option(name="--record", metavar="RUN")] = ()
    """Run of `unreel eval` from which the page shows the measured accuracy of a model. Repeatable."""
    passport: Annotated[Path | None, FILE] = None
    """Passport of `unreel calibrate`: each verdict is compared with those about your own real footage."""
    trust_anchors: Annotated[Path | None, FILE] = None
    """PEM file of certificate authorities: Content Credentials of their signers are shown as trusted.  [default: none]"""
    perturb: bool = False
    """Ask all questions again about recompressed, scaled and cropped copies of each clip: 4 times as many questions."""
    n_scan: Annotated[int, Option(name="--scan", low=0, high=1000)] = 24
    """Maximum number of questions to each model about a clip longer than one minute, each about a different part of the clip. 0 turns these questions off."""
    sample: bool = False
    """Review a built-in synthetic clip with recorded answers, offline."""

    @property
    def conditions(self) -> dict[str, str]:
        """Return the input settings that are given."""
        parsed = self.parse_conditions([self.condition] if self.condition else [])
        return parsed[0] if parsed else {}


@dataclass(frozen=True, kw_only=True)
class EvalSettings(
    ModelSettings, SamplingSettings, EngineSettings, BenchmarkSettings, TrustSettings
):
    """Settings of `plan_runs`."""

    benchmark: Annotated[str | None, Option(is_argument=True, kind="benchmark")] = None
    models: Annotated[tuple[str, ...], Option(name="--model", kind="model")] = ()
    """Model to evaluate: provider/name, provider/name@URL, NAME or NAME@URL of `unreel models list`, local/FOLDER, recorded (see --recorded), or a baseline: coin, always-real, always-generated, metadata, motion. Repeatable."""
    protocol: Annotated[str | None, Option(kind="protocol")] = None
    """Protocol of the questions. trace: where, when and why a clip looks generated; realism: a score from 1 to 5; reality: real or generated; preference: which of two clips is real; locate: every generated segment of a long clip."""
    recipe: Annotated[Path | None, Option(kind="existing")] = None
    """TOML file with the settings of the evaluation. Command-line options take precedence."""
    conditions: Annotated[
        tuple[str, ...], Option(name="--condition", metavar="NAME=VALUE,...")
    ] = ()
    """Input settings of the questions, separated by commas: sampling=PLAN, audio=on, watermark=removed, thinking=on|off, prompt=VARIANT. Repeatable: each condition is evaluated."""
    out: Annotated[str | None, Option(metavar="PLACE")] = None
    """Folder or s3://bucket/prefix of the run, which stores the answers. With several models, each run is a subfolder.  [default: runs/MODEL-PROTOCOL-BENCHMARK]"""
    accept_changed: bool = False
    """Continue even if the benchmark or the recipe has changed since the run began."""
    split: str | None = None
    """Name of the benchmark split to use, for example test.  [default: all splits]"""
    limit: Annotated[int | None, Option(low=1)] = None
    """Number of clips in a random sample, balanced over labels and creators.  [default: all clips]"""
    max_connections: Annotated[int | None, Option(low=1)] = None
    """Maximum number of concurrent questions to a model.  [default: 16]"""
    max_requests: Annotated[int | None, Option(low=1)] = None
    """Maximum number of requests in one call of this command.  [default: no limit]"""
    max_cost_usd: float | None = None
    """Maximum cost of the run in US dollars, including earlier calls. Requires --prices.  [default: no limit]"""
    retry_failed: bool = False
    """Retry the questions that failed in earlier calls."""
    batch: bool = False
    """Send the questions in files that the provider answers within 24 hours, at half the price. For models of OpenAI."""


_RECIPE_KEYS = (
    *("benchmark", "protocol", "layout", "split", "limit", "recorded", "show", "box_space"),
    *("max_connections", "max_requests", "max_cost_usd", "prices", "deadline_s"),
)
"""Settings that are keys of a recipe."""


def require_model_keys(models: Sequence[str]) -> None:
    """Raise if the API key of a model is missing."""
    list_model_endpoints(models, key_hosts=read_environment_settings().key_hosts)


def plan_runs(
    settings: EvalSettings, on_note: Callable[[str], None] = lambda _note: None
) -> "list[EvalRun]":
    """Plan a run for each model: one at `out`, several in subfolders of `out`.

    A benchmark by name brings its settings from the catalogue, which `on_note` receives.

    Raises:
        InvalidSettingError: Two models would be stored in the same place.
    """
    conditions = settings.parse_conditions(settings.conditions)
    if (named := find_named_benchmark(settings.benchmark)) is not None:
        settings, conditions = _apply_catalogue_settings(settings, conditions, named, on_note)
    with needs_extra("eval"):
        from unreel.evaluation.run_lookup import build_eval_run, find_run_location
        from unreel.media.access import require_sandbox_protection

    environment = read_environment_settings()
    flags: dict[str, Any] = {name: getattr(settings, name) for name in _RECIPE_KEYS}
    flags["condition"] = conditions
    flags["mapping"] = parse_column_mapping(settings.mapping) or None
    names: Sequence[str | None] = tuple(dict.fromkeys(settings.models)) or (None,)
    recipes = [_resolve_recipe(settings, flags | {"model": name}) for name in names]
    if settings.batch:
        for recipe in recipes:
            recipe.reviewer.require_batches()
        if settings.engine != "local":
            raise InvalidSettingError(
                "--batch", f"cannot be combined with --engine {settings.engine}", "Leave it out"
            )
    require_sandbox_protection(environment, trusted=settings.trusted)
    runs: dict[str, EvalRun] = {}
    for recipe in recipes:
        out = settings.out
        if len(recipes) > 1 and out is not None:
            out = find_run_location(recipe, out.rstrip("/"), environment)
        run = build_eval_run(
            recipe,
            out,
            environment,
            trusted=settings.trusted,
            outside=settings.allow_outside,
            accept_changed=settings.accept_changed,
        )
        if (same := runs.get(run.place.uri)) is not None:
            raise InvalidSettingError(
                "model",
                f"{same.recipe.reviewer.model} and {recipe.reviewer.model} would both be stored in {run.place.uri}",
                "Ask one of them in a call of its own, with --out",
            )
        runs[run.place.uri] = run
    return list(runs.values())


def _apply_catalogue_settings(
    settings: EvalSettings,
    conditions: list[dict[str, str]] | None,
    named: NamedBenchmark,
    on_note: Callable[[str], None],
) -> tuple[EvalSettings, list[dict[str, str]] | None]:
    """Return the settings and conditions with those of the catalogue where the user or the recipe gives none."""
    from unreel.core.input_files import read_toml_file

    defaults = named.entry.evaluation
    written = {} if settings.recipe is None else read_toml_file(settings.recipe, "recipe")
    settings, chosen = apply_catalogue_settings(settings, named, is_written=written)
    protocol = settings.protocol or written.get("protocol")
    if defaults is not None and protocol == defaults.protocol:
        usual = {"sampling": defaults.sampling, "prompt": defaults.prompt}
        missing = {
            name: value
            for name, value in usual.items()
            if value is not None and not any(name in each for each in conditions or ())
        }
        if conditions or "condition" not in written:
            conditions = [missing | each for each in conditions or [{}]]
            chosen |= missing
    on_note(describe_choice(named, chosen))
    return settings, conditions


def _resolve_recipe(settings: EvalSettings, flags: Mapping[str, Any]) -> "EvalRecipe":
    """Return the recipe of the file and flags, or of the run `out` if neither names a benchmark."""
    from unreel.engine.location import resolve_location
    from unreel.evaluation.recipe import resolve_eval_recipe, validate_eval_recipe
    from unreel.evaluation.stored_recipe import StoredRecipe, find_run_recipe
    from unreel.recipes.validation import drop_unset_keys

    if settings.recipe is not None or settings.benchmark is not None or settings.out is None:
        return resolve_eval_recipe(settings.recipe, flags)
    run = resolve_location(settings.out, read_storage_options(read_environment_settings()))
    stored = find_run_recipe(run)
    if not isinstance(stored, StoredRecipe):
        return resolve_eval_recipe(None, flags)
    benchmark: dict[str, str] = {}
    if stored.benchmark is not None:
        # The path is kept as typed if it is valid from here, else made absolute.
        path, typed = stored.benchmark.find(run), Path(stored.recipe.benchmark)
        is_same = typed.exists() and typed.samefile(path)
        benchmark = {"benchmark": stored.recipe.benchmark if is_same else str(path.resolve())}
    return validate_eval_recipe(stored.recipe.stored() | benchmark | drop_unset_keys(flags))


def describe_contacts(runs: "Sequence[EvalRun]") -> Sequence[str]:
    """Return one line for each server, service and program that the runs will use."""
    from unreel.api.contacts import (
        describe_external_reviewers,
        describe_model_servers,
        describe_prompts,
    )

    environment = runs[0].access.settings
    sections = [run.recipe.reviewer for run in runs]
    models = [section.model for section in sections]
    return (
        *describe_model_servers(models, environment, tells_prompts=False),
        *(line for run in runs for line in describe_prompts(run.recipe)),
        *describe_external_reviewers(sections, environment),
    )


def require_ready(runs: "Sequence[EvalRun]", *, engine: str) -> None:
    """Raise if the place of a run cannot be used, or the server of a new run does not listen."""
    from unreel.engine.location import require_conditional_puts

    for run in runs:
        require_conditional_puts(run.place)  # before the longer wait for a table there
        if not run.answers.exists():
            _require_listening_server(run, engine=engine)
    if len(runs) > 1:
        runs[0].benchmark()  # report its errors once, and not for each model


def _require_listening_server(run: "EvalRun", *, engine: str) -> None:
    if engine != "local":
        return  # the requests are sent from other machines
    key_hosts = run.access.settings.key_hosts
    for contact in list_model_endpoints([run.recipe.reviewer.model], key_hosts=key_hosts):
        require_server_listening(contact)


def evaluate_run(
    run: "EvalRun",
    settings: EvalSettings,
    callbacks: "JobCallbacks",
    *,
    facts_table: "LanceTable | None" = None,
) -> "EvalSummary":
    """Send the missing questions of a run; `facts_table` has the facts of clips that another run read."""
    from unreel.engine.run import ALL_FAILURES
    from unreel.evaluation.run_job import evaluate

    def expect(part: str, due: int) -> None:
        if part == "answers" and due:
            _require_listening_server(run, engine=settings.engine)
        callbacks.on_due(part, due)

    return evaluate(
        run,
        engine=settings.engine,
        retry_failed=ALL_FAILURES if settings.retry_failed else frozenset(),
        facts_table=facts_table,
        in_batches=settings.batch,
        callbacks=replace(callbacks, on_due=expect),
    )


def score_run(run: "EvalRun") -> "Sequence[ConditionScore]":
    """Score the stored answers of a run with the parser of its recipe."""
    from unreel.evaluation.scoring import score_run

    return score_run(run, mode=run.recipe.reviewer.parser)


def find_first_failures(run: "EvalRun", reasons: Sequence[str]) -> dict[str, str]:
    """Return the first failure of a run for each of `reasons`, as text."""
    from unreel.core.failure import parse_stored_failure

    failures: dict[str, str] = {}
    if not run.answers.exists():
        return failures
    columns = ("failure_reason", "failure_detail")
    for reason in reasons:
        quoted = reason.replace("'", "''")
        row = next(iter(run.answers.rows(columns, where=f"failure_reason = '{quoted}'")), None)
        if row is not None:
            failures[reason] = str(parse_stored_failure(*(row[name] for name in columns)))
    return failures


def list_unsent_reasons() -> frozenset[str]:
    """Return the failure reasons of questions that were never sent."""
    from unreel.evaluation.run_job import NOT_SENT

    return NOT_SENT


def forecast_runs(
    runs: "Sequence[EvalRun]",
    settings: EvalSettings,
    callbacks: "JobCallbacks",
    on_run: "Callable[[int, EvalRun], None]",
) -> "list[QuestionForecast]":
    """Count the questions, tokens and cost of each planned run; nothing is sent or written."""
    from unreel.engine.run import ALL_FAILURES
    from unreel.evaluation.forecast import forecast_eval, open_temporary_clip_table

    retry = ALL_FAILURES if settings.retry_failed else frozenset()
    forecasts = []
    with open_temporary_clip_table() as clip_table:
        for number, run in enumerate(runs, start=1):
            on_run(number, run)
            forecasts.append(
                forecast_eval(
                    run,
                    aside=clip_table,
                    retry_failed=retry,
                    in_batches=settings.batch,
                    callbacks=callbacks,
                )
            )
    return forecasts
