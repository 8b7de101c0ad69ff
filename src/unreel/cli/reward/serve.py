"""`unreel reward serve`: serve rewards of clips over HTTP."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unreel.cli.options import box_space_option, condition_option, parse_condition_options
from unreel.cli.output import SILENCE, print_message, trusted_option
from unreel.cli.process_signals import StopSignalReceived
from unreel.protocols.protocol import REVIEWED

if TYPE_CHECKING:
    from unreel.rewards.service.settings import RewardServiceSettings

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option(
    "--model",
    "models",
    multiple=True,
    required=True,
    help="Model that judges the clips. Repeatable.",
)
@click.option(
    "--protocol",
    "protocols",
    multiple=True,
    default=REVIEWED,
    show_default=True,
    help="Question that each model is asked: trace, realism, reality or locate. Repeatable.",
)
@condition_option(multiple=False)
@click.option(
    "--parser",
    type=click.Choice(["strict", "lenient"]),
    default="lenient",
    show_default=True,
    help="Parser of the answers: strict accepts the requested form only.",
)
@click.option(
    "--recorded", type=_FILE, help="JSON Lines file of stored answers, for `--model recorded`."
)
@box_space_option
@click.option(
    "--calibration",
    "calibrations",
    multiple=True,
    type=_FILE,
    help="File that `unreel reward calibrate` wrote. Repeatable.",
)
@click.option(
    "--held-out",
    multiple=True,
    help="Model whose reward is written to the log and not returned. Repeatable.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. Addresses other than loopback require --tokens.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8060,
    show_default=True,
    help="Port to listen on; 0 takes a free port, which is printed.",
)
@click.option(
    "--engine",
    type=click.Choice(["uvicorn", "ray"]),
    default="uvicorn",
    show_default=True,
    help="Run one process (uvicorn), or several replicas with Ray Serve (needs the extra `ray`).",
)
@click.option(
    "--replicas",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Number of replicas with --engine ray.",
)
@click.option(
    "--tokens",
    type=_FILE,
    help="TOML file of the bearer tokens that callers must send, with their scopes and limits.",
)
@click.option(
    "--store",
    default="reward-cache.sqlite",
    show_default=True,
    help="Cache of answers: an SQLite file, or postgresql://USER@HOST/DATABASE for several "
    "machines.",
)
@click.option(
    "--ask-once",
    is_flag=True,
    help="Return null for a question whose process was killed, instead of asking it again.",
)
@click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder whose files callers may name by path. Without it no path is accepted. Repeatable.",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="https://HOST",
    help="Host whose URLs callers may name. Without it no URL is accepted. Repeatable.",
)
@click.option(
    "--dialect",
    "dialects",
    multiple=True,
    metavar="NAME",
    help="Also accept the requests of a trainer: unirl, flow-factory, pickle (from this machine) "
    "or pickle-remote (from all machines). Repeatable.",
)
@click.option(
    "--log",
    type=_FILE,
    help="JSON Lines file to append each reward to. It starts the guards against reward hacking.",
)
@click.option(
    "--stop-on",
    multiple=True,
    metavar="GUARD",
    help="Refuse all requests with status 503 after an alarm of this guard, or of `any` guard. "
    "Repeatable.",
)
@click.option(
    "--canaries",
    type=click.Path(path_type=Path, exists=True),
    metavar="BENCHMARK",
    help="Benchmark that `unreel curate` made with [inject]. Its clips are scored beside the "
    "requests to test the models.",
)
@click.option(
    "--canary-rate",
    type=click.FloatRange(0, 1),
    default=0.02,
    show_default=True,
    help="Number of pairs of --canaries that are scored for each new clip, on average.",
)
@click.option(
    "--max-mb",
    type=click.IntRange(1),
    default=256,
    show_default=True,
    help="Largest accepted request in MB.",
)
@click.option(
    "--deadline",
    type=click.FloatRange(0, min_open=True),
    default=120,
    show_default=True,
    help="Seconds after which a request is answered. Clips without a reward by then are null.",
)
@trusted_option
def serve(*, host: str, port: int, engine: str, replicas: int, **options: Any) -> None:
    """Serve rewards over HTTP: POST /v1/rewards; the API is described at /docs.

    Runs until Ctrl-C or SIGTERM, finishes the requests that run, and exits with status 0.
    """
    from unreel.rewards.service.app import create_reward_app
    from unreel.rewards.service.serving import require_tokens_if_exposed, run_ray_replicas
    from unreel.webapp.server import run_app

    settings = _build_reward_service_settings(options)
    require_tokens_if_exposed(settings, host, port)

    def announce(address: str) -> None:
        SILENCE.stop()
        print_message(f"unreel reward: {address}")

    try:
        if engine == "ray":
            run_ray_replicas(settings, n_replicas=replicas, host=host, port=port, on_start=announce)
        else:
            app, stop_s = create_reward_app(settings), int(settings.deadline_s) + 1
            run_app(app, host=host, port=port, on_start=announce, stop_s=stop_s)
    except StopSignalReceived:
        print_message("unreel reward: stopped")


def _build_reward_service_settings(options: dict[str, Any]) -> "RewardServiceSettings":
    from unreel.rewards.service.settings import RewardServiceSettings
    from unreel.webapp.tokens import read_tokens

    keys = ("recorded", "box_space")
    condition, max_mb, tokens = (options.pop(key) for key in ("condition", "max_mb", "tokens"))
    conditions = parse_condition_options([condition] if condition else [], nframe=None, fps=None)
    return RewardServiceSettings(
        reviewer={key: value for key in keys if (value := options.pop(key)) is not None},
        condition=conditions[0] if conditions else {},
        tokens=read_tokens(tokens) if tokens else (),
        roots=tuple(root.resolve() for root in options.pop("roots")),
        max_request_bytes=max_mb << 20,
        deadline_s=options.pop("deadline"),
        **options,
    )
