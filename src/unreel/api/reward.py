"""Rewards of generated clips: of one clip, over HTTP, calibrated, and watched for reward hacking."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Unpack

from unreel.api.keyword_types import Models, ReviewerKeys, require_reviewer_object
from unreel.api.shared_settings import BoxSettings, TrustSettings, parse_condition
from unreel.core.command_options import FOLDER, NEW_FILE, Option
from unreel.core.output_files import OutputDirectory
from unreel.core.registry import needs_extra
from unreel.core.settings import read_environment_settings
from unreel.protocols.protocol import REVIEWED, Mode

if TYPE_CHECKING:
    from unreel.rewards.calibration import RewardCalibration
    from unreel.rewards.guards.result import GuardResult
    from unreel.rewards.result import Reward


def reward(
    clip: str | Path,
    *,
    models: Models,
    prompt: str | None = None,  # noqa: ARG001  for formulas to come
    protocols: str | Sequence[str] = REVIEWED,
    condition: Mapping[str, str] | None = None,
    trusted: bool = False,
    parser: Mode = "lenient",
    calibration: "RewardCalibration | Sequence[RewardCalibration] | None" = None,
    **reviewer: Unpack[ReviewerKeys],
) -> "Reward":
    """Return the reward of the video file `clip`: a value from 0 to 1 (1 = looks real), or a failure.

    For many clips use `unreel.rewards.model.RewardModel`, which keeps models and decoders open.

    Args:
        clip: path of a video file.
        models: reviewers: `provider/name`, a baseline such as `coin`, your own objects, or several.
        prompt: text that the clip was generated from; `reward@1` does not use it.
        protocols: `trace`, `realism`, `reality`; each reviewer answers each.
        condition: input settings of the questions, for example `{"sampling": "uniform-16"}`.
        trusted: open the file in this process; by default a confined child does.
        parser: `lenient` also reads usual variations of the requested form, `strict` that form alone.
        calibration: results of `unreel reward calibrate`, read by `unreel.rewards.calibration.read_calibration`.
        reviewer: further keys of `[reviewer]`, for example `deadline_s=30`.

    Raises:
        InvalidSettingError: A setting cannot be used.
        UnknownNameError: No protocol or model has that name.
    """
    from unreel.rewards.model import RewardModel

    for model in (
        models if isinstance(models, Sequence) and not isinstance(models, str) else [models]
    ):
        require_reviewer_object(model)
    names = [protocols] if isinstance(protocols, str) else protocols
    with RewardModel(
        models,
        protocols=names,
        condition=condition,
        parser=parser,
        trusted=trusted,
        calibration=calibration,
        **reviewer,
    ) as scorer:
        return scorer.score(clip)


@dataclass(frozen=True, kw_only=True)
class ServeSettings(TrustSettings, BoxSettings):
    """Settings of `serve_rewards`."""

    models: Annotated[tuple[str, ...], Option(name="--model", is_required=True)] = ()
    """Model that judges the clips, for example openai/NAME. Repeatable."""
    protocols: Annotated[tuple[str, ...], Option(name="--protocol")] = REVIEWED
    """Protocol of the questions. trace: where, when and why a clip looks generated; realism: a score from 1 to 5; reality: real or generated; locate: every generated segment of a long clip. Repeatable."""
    condition: Annotated[str | None, Option(metavar="NAME=VALUE,...")] = None
    """Input settings of the questions, separated by commas: sampling=PLAN, audio=on, watermark=removed, thinking=on|off, prompt=VARIANT."""
    parser: Mode = "lenient"
    """Parser of the answers. strict: accepts only the requested format; lenient: also accepts common variations."""
    recorded: Annotated[Path | None, NEW_FILE] = None
    """JSON Lines file with existing answers. `--model recorded` returns them instead of asking a model."""
    calibrations: Annotated[tuple[Path, ...], Option(name="--calibration", kind="new file")] = ()
    """Calibration file from `unreel reward calibrate`. Repeatable."""
    held_out: tuple[str, ...] = ()
    """Additional model whose rewards are only logged and never returned, to detect reward hacking. Repeatable."""
    host: str = "127.0.0.1"
    """Network address on which the server listens. Addresses other than loopback require --tokens."""
    port: Annotated[int, Option(low=0, high=65535)] = 8060
    """TCP port of the server. With 0, the system chooses a free port, and the command prints it."""
    engine: Literal["uvicorn", "ray"] = "uvicorn"
    """Execution engine. uvicorn: one process; ray: several replicas with Ray Serve (needs the extra `ray`)."""
    replicas: Annotated[int, Option(low=1)] = 2
    """Number of replicas (server processes). Only for --engine ray."""
    tokens: Annotated[Path | None, NEW_FILE] = None
    """TOML file that defines the accepted bearer tokens of clients, with their scopes and limits."""
    store: str = "reward-cache.sqlite"
    """Database in which answers are cached: an SQLite file, or postgresql://USER@HOST/DATABASE for several machines."""
    ask_once: bool = False
    """Return null for a question if the process that asked it was killed, instead of asking it again."""
    roots: Annotated[tuple[Path, ...], Option(name="--root", kind="existing folder")] = ()
    """Folder from which clients may request clips by path. Without it, paths are rejected. Repeatable."""
    hosts: Annotated[tuple[str, ...], Option(name="--allow-host", metavar="https://HOST")] = ()
    """Host from which clients may request clips by URL. Without it, URLs are rejected. Repeatable."""
    dialects: Annotated[tuple[str, ...], Option(name="--dialect", metavar="NAME")] = ()
    """Additional request format, of a trainer: unirl, flow-factory, pickle (only from this machine) or pickle-remote (from all machines). Repeatable."""
    log: Annotated[Path | None, NEW_FILE] = None
    """JSON Lines file to which each reward is appended. It also enables the guards, which are tests for reward hacking."""
    stop_on: Annotated[tuple[str, ...], Option(metavar="GUARD")] = ()
    """Name of a guard (a test for reward hacking), or any. After its alarm, all requests are rejected with status 503. Repeatable."""
    canaries: Annotated[Path | None, Option(kind="existing", metavar="BENCHMARK")] = None
    """Benchmark with injected traces, from `unreel curate`. Its clips are scored in addition to those of clients, to test the models."""
    canary_rate: Annotated[float, Option(low=0, high=1)] = 0.02
    """Probability that the service also scores one pair of clips from --canaries, for each new clip of a client."""
    max_mb: Annotated[int, Option(low=1)] = 256
    """Maximum size of a request in MiB."""
    deadline: Annotated[float, Option(kind="positive number")] = 120
    """Timeout of a request in seconds. The reward of a clip that is not finished by then is null."""


def serve_rewards(settings: ServeSettings, on_start: Callable[[str], None]) -> None:
    """Serve rewards over HTTP until a stop signal; `on_start` receives the address."""
    with needs_extra("reward"):
        from unreel.rewards.service.app import create_reward_app
        from unreel.rewards.service.serving import require_tokens_if_exposed, run_ray_replicas
        from unreel.rewards.service.settings import RewardServiceSettings
        from unreel.webapp.server import run_app
        from unreel.webapp.tokens import read_tokens

    reviewer = {"recorded": settings.recorded, "box_space": settings.box_space}
    service = RewardServiceSettings(
        models=settings.models,
        protocols=settings.protocols,
        condition=parse_condition(settings.condition),
        parser=settings.parser,
        reviewer={key: value for key, value in reviewer.items() if value is not None},
        trusted=settings.trusted,
        calibrations=settings.calibrations,
        held_out=settings.held_out,
        store=settings.store,
        ask_once=settings.ask_once,
        tokens=read_tokens(settings.tokens) if settings.tokens else (),
        roots=tuple(root.resolve() for root in settings.roots),
        hosts=settings.hosts,
        dialects=settings.dialects,
        log=settings.log,
        stop_on=settings.stop_on,
        canaries=settings.canaries,
        canary_rate=settings.canary_rate,
        max_request_bytes=settings.max_mb << 20,
        deadline_s=settings.deadline,
    )
    host, port = settings.host, settings.port
    require_tokens_if_exposed(service, host, port)
    if settings.engine == "ray":
        n_replicas = settings.replicas
        run_ray_replicas(service, n_replicas=n_replicas, host=host, port=port, on_start=on_start)
    else:
        app, stop_s = create_reward_app(service), int(service.deadline_s) + 1
        run_app(app, host=host, port=port, on_start=on_start, stop_s=stop_s)


@dataclass(frozen=True, kw_only=True)
class CalibrateSettings:
    """Settings of `calibrate`."""

    run: Annotated[str, Option(is_argument=True)]
    method: Literal["isotonic", "platt"] = "isotonic"
    """Calibration method. isotonic: isotonic regression; platt: Platt scaling."""
    parser: Mode = "lenient"
    """Parser of the answers. strict: accepts only the requested format; lenient: also accepts common variations. Use the same parser for `unreel reward serve`."""
    out: Annotated[Path, NEW_FILE] = Path("reward-calibration.json")
    """JSON file for the calibration, to be used by `unreel reward serve --calibration`."""


def calibrate(settings: CalibrateSettings) -> "RewardCalibration":
    """Fit the probability that a clip is real to the stored answers of a run, and write it."""
    from unreel.evaluation.run_lookup import open_named_run
    from unreel.rewards.calibration import fit_calibration_on_run

    run = open_named_run(settings.run, read_environment_settings())
    fitted = fit_calibration_on_run(run, method=settings.method, mode=settings.parser)
    fitted.write(settings.out)
    return fitted


@dataclass(frozen=True, kw_only=True)
class WatchSettings:
    """Settings of `watch_log`."""

    log: Annotated[Path, Option(is_argument=True, kind="file")]
    out: Annotated[Path | None, FOLDER] = None
    """Output folder for a page with the curves. Without it, no page is written."""
    alpha: Annotated[float, Option(kind="open share")] = 0.05
    """Maximum probability of any alarm in a training without reward hacking."""


@dataclass(frozen=True, kw_only=True)
class WatchedLog:
    """Results of the guards on a reward log."""

    guards: "Sequence[GuardResult]"
    cells: Sequence[Mapping[str, str]]
    """Results as texts, by column."""
    n_steps: int
    n_late: int
    """Number of rows that came after their step was closed."""
    page: Path | None


def watch_log(settings: WatchSettings) -> WatchedLog:
    """Search a log of the reward service for signs of reward hacking."""
    from unreel.rewards.guards.evaluate import evaluate_guards_on_steps
    from unreel.rewards.guards.page import format_guard_cells, write_guard_page
    from unreel.rewards.guards.result import RewardGuardLimits
    from unreel.rewards.guards.training_steps import TrainingStepCollector, iter_reward_log_rows

    limits, collector = RewardGuardLimits(alpha=settings.alpha), TrainingStepCollector()
    collector.add(iter_reward_log_rows(settings.log))
    steps = collector.finish()
    results = evaluate_guards_on_steps(steps, limits)
    page = None
    if settings.out:
        title = settings.log.name
        page = write_guard_page(results, steps, settings.out, title=title, limits=limits)
    return WatchedLog(
        guards=results,
        cells=[format_guard_cells(result) for result in results],
        n_steps=len(steps),
        n_late=collector.n_late,
        page=page,
    )


def write_client(out: Path) -> None:
    """Write the client of the reward service as one file."""
    source = files("unreel.rewards.client") / "unreel_reward_client.py"
    target = out.absolute()
    OutputDirectory(target.parent, published=True).write(target.name, source.read_bytes())
