"""`unreel reward serve`: serve rewards of clips over HTTP."""

from pathlib import Path
from typing import Any

import click

from unreel.cli.options import box_space_option, condition_option, parse_condition_options
from unreel.cli.output import SILENCE, print_message, trusted_option
from unreel.cli.process_signals import StopSignalReceived
from unreel.protocols.protocol import REVIEWED

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option(
    "--model",
    "models",
    multiple=True,
    required=True,
    help="Model that judges the clips, for example openai/NAME. Repeatable.",
)
@click.option(
    "--protocol",
    "protocols",
    multiple=True,
    default=REVIEWED,
    show_default=True,
    help="Protocol of the questions. trace: where, when and why a clip looks generated; realism: a score from 1 to 5; reality: real or generated; locate: every generated segment of a long clip. Repeatable.",
)
@condition_option(multiple=False)
@click.option(
    "--parser",
    type=click.Choice(["strict", "lenient"]),
    default="lenient",
    show_default=True,
    help="Parser of the answers. strict: accepts only the requested format; lenient: also accepts common variations.",
)
@click.option(
    "--recorded",
    type=_FILE,
    help="JSON Lines file with existing answers. `--model recorded` returns them instead of asking a model.",
)
@box_space_option
@click.option(
    "--calibration",
    "calibrations",
    multiple=True,
    type=_FILE,
    help="Calibration file from `unreel reward calibrate`. Repeatable.",
)
@click.option(
    "--held-out",
    multiple=True,
    help="Additional model whose rewards are only logged and never returned, to detect reward hacking. Repeatable.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Network address on which the server listens. Addresses other than loopback require --tokens.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8060,
    show_default=True,
    help="TCP port of the server. With 0, the system chooses a free port, and the command prints it.",
)
@click.option(
    "--engine",
    type=click.Choice(["uvicorn", "ray"]),
    default="uvicorn",
    show_default=True,
    help="Execution engine. uvicorn: one process; ray: several replicas with Ray Serve (needs the extra `ray`).",
)
@click.option(
    "--replicas",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Number of replicas (server processes). Only for --engine ray.",
)
@click.option(
    "--tokens",
    type=_FILE,
    help="TOML file that defines the accepted bearer tokens of clients, with their scopes and limits.",
)
@click.option(
    "--store",
    default="reward-cache.sqlite",
    show_default=True,
    help="Database in which answers are cached: an SQLite file, or postgresql://USER@HOST/DATABASE for several machines.",
)
@click.option(
    "--ask-once",
    is_flag=True,
    help="Return null for a question if the process that asked it was killed, instead of asking it again.",
)
@click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder from which clients may request clips by path. Without it, paths are rejected. Repeatable.",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="https://HOST",
    help="Host from which clients may request clips by URL. Without it, URLs are rejected. Repeatable.",
)
@click.option(
    "--dialect",
    "dialects",
    multiple=True,
    metavar="NAME",
    help="Additional request format, of a trainer: unirl, flow-factory, pickle (only from this machine) or pickle-remote (from all machines). Repeatable.",
)
@click.option(
    "--log",
    type=_FILE,
    help="JSON Lines file to which each reward is appended. It also enables the guards, which are tests for reward hacking.",
)
@click.option(
    "--stop-on",
    multiple=True,
    metavar="GUARD",
    help="Name of a guard (a test for reward hacking), or any. After its alarm, all requests are rejected with status 503. Repeatable.",
)
@click.option(
    "--canaries",
    type=click.Path(path_type=Path, exists=True),
    metavar="BENCHMARK",
    help="Benchmark with injected traces, from `unreel curate`. Its clips are scored in addition to those of clients, to test the models.",
)
@click.option(
    "--canary-rate",
    type=click.FloatRange(0, 1),
    default=0.02,
    show_default=True,
    help="Probability that the service also scores one pair of clips from --canaries, for each new clip of a client.",
)
@click.option(
    "--max-mb",
    type=click.IntRange(1),
    default=256,
    show_default=True,
    help="Maximum size of a request in MiB.",
)
@click.option(
    "--deadline",
    type=click.FloatRange(0, min_open=True),
    default=120,
    show_default=True,
    help="Timeout of a request in seconds. The reward of a clip that is not finished by then is null.",
)
@trusted_option
def serve(*, host: str, port: int, engine: str, replicas: int, **options: Any) -> None:
    """Serve rewards over HTTP.

    Clients send clips to POST /v1/rewards; the page /docs describes the API.

    Runs until Ctrl-C or SIGTERM, finishes the current requests, and exits with status 0.
    """
    from unreel.rewards.service.app import create_reward_app
    from unreel.rewards.service.serving import require_tokens_if_exposed, run_ray_replicas
    from unreel.rewards.service.settings import RewardServiceSettings
    from unreel.webapp.server import run_app
    from unreel.webapp.tokens import read_tokens

    keys = ("recorded", "box_space")
    condition, max_mb, tokens = (options.pop(key) for key in ("condition", "max_mb", "tokens"))
    conditions = parse_condition_options([condition] if condition else [], nframe=None, fps=None)
    settings = RewardServiceSettings(
        reviewer={key: value for key in keys if (value := options.pop(key)) is not None},
        condition=conditions[0] if conditions else {},
        tokens=read_tokens(tokens) if tokens else (),
        roots=tuple(root.resolve() for root in options.pop("roots")),
        max_request_bytes=max_mb << 20,
        deadline_s=options.pop("deadline"),
        **options,
    )
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
