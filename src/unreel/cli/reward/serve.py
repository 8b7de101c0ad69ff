"""`unreel reward serve`: rewards over HTTP."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unreel.cli.options import box_space_option, condition_option, parse_condition_options
from unreel.cli.output import SILENCE, print_message, trusted_option
from unreel.cli.process import StopSignal
from unreel.protocols.protocol import REVIEWED

if TYPE_CHECKING:
    from unreel.rewards.service.settings import ServiceSettings

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option("--model", "models", multiple=True, required=True, help="Model to ask. Repeatable.")
@click.option(
    "--protocol",
    "protocols",
    multiple=True,
    default=REVIEWED,
    show_default=True,
    help="Protocol: trace, realism or reality. Repeatable.",
)
@condition_option(multiple=False)
@click.option(
    "--parser",
    type=click.Choice(["strict", "lenient"]),
    default="lenient",
    show_default=True,
    help="Parser of the answers.",
)
@click.option("--recorded", type=_FILE, help="File of answers for the model `recorded`.")
@box_space_option
@click.option(
    "--calibration",
    "calibrations",
    multiple=True,
    type=_FILE,
    help="Result of `unreel reward calibrate`. Repeatable.",
)
@click.option("--held-out", multiple=True, help="Model whose reward is only logged. Repeatable.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Host to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8060, show_default=True, help="Port; 0: any."
)
@click.option(
    "--engine",
    type=click.Choice(["uvicorn", "ray"]),
    default="uvicorn",
    show_default=True,
    help="One process, or replicas by Ray Serve (extra `ray`).",
)
@click.option(
    "--replicas", type=click.IntRange(1), default=2, show_default=True, help="Replicas with ray."
)
@click.option("--tokens", type=_FILE, help="TOML file of bearer tokens.")
@click.option(
    "--store",
    default="reward-cache.sqlite",
    show_default=True,
    help="Cache: a file of SQLite, or postgresql://... for several processes.",
)
@click.option("--ask-once", is_flag=True, help="Never repeat a question whose process ended.")
@click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder whose files a request may name by path. Repeatable.",
)
@click.option(
    "--allow-host", "hosts", multiple=True, help="Place of URLs: https://HOST. Repeatable."
)
@click.option(
    "--dialect", "dialects", multiple=True, help="Request format of a trainer. Repeatable."
)
@click.option("--log", type=_FILE, help="Reward log: one JSON line for each item.")
@click.option(
    "--stop-on",
    multiple=True,
    metavar="GUARD",
    help="Refuse requests with 503 after an alarm of this guard, or of `any`. Repeatable.",
)
@click.option(
    "--canaries",
    type=click.Path(path_type=Path, exists=True),
    metavar="BENCHMARK",
    help="Clips with injected twins, from `unreel curate` with [inject], to score and log.",
)
@click.option(
    "--canary-rate",
    type=click.FloatRange(0, 1),
    default=0.02,
    show_default=True,
    help="Pairs of canaries for each new clip.",
)
@click.option(
    "--max-mb", type=click.IntRange(1), default=256, show_default=True, help="MB per request."
)
@click.option(
    "--deadline",
    type=click.FloatRange(0, min_open=True),
    default=120,
    show_default=True,
    help="Longest time of a request in seconds.",
)
@trusted_option
def serve(*, host: str, port: int, engine: str, replicas: int, **options: Any) -> None:
    """Serve rewards over HTTP: POST /v1/rewards; the API is described at /docs.

    Runs until Ctrl-C or SIGTERM, finishes the requests that run, and exits with status 0.
    """
    from unreel.rewards.service.serving import require_tokens, run_process, run_replicas

    settings = _read_options(options)
    require_tokens(settings, host, port)

    def announce(address: str) -> None:
        SILENCE.stop()
        print_message(f"unreel reward: {address}")

    try:
        if engine == "ray":
            run_replicas(settings, n_replicas=replicas, host=host, port=port, on_start=announce)
        else:
            run_process(settings, host=host, port=port, on_start=announce)
    except StopSignal:
        print_message("unreel reward: stopped")


def _read_options(options: dict[str, Any]) -> "ServiceSettings":
    from unreel.rewards.service.settings import ServiceSettings
    from unreel.webapp.tokens import read_tokens

    keys = ("recorded", "box_space")
    condition, max_mb, tokens = (options.pop(key) for key in ("condition", "max_mb", "tokens"))
    conditions = parse_condition_options([condition] if condition else [], nframe=None, fps=None)
    return ServiceSettings(
        reviewer={key: value for key in keys if (value := options.pop(key)) is not None},
        condition=conditions[0] if conditions else {},
        tokens=read_tokens(tokens) if tokens else (),
        roots=tuple(root.resolve() for root in options.pop("roots")),
        max_request_bytes=max_mb << 20,
        deadline_s=options.pop("deadline"),
        **options,
    )
