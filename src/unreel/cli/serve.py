"""`unreel serve`: run a vLLM server with a checkpoint until the command is stopped."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unreel.cli.output import SILENCE, echo, json_option, print_json, print_message
from unreel.cli.process_signals import StopSignalReceived
from unreel.cli.progress import ProgressMeter
from unreel.core.errors import InvalidSettingError

if TYPE_CHECKING:
    from unreel.reviewers.local.vllm_plan import ServedModel, VllmServerPlan
    from unreel.reviewers.local.vllm_server import VllmInstallation


@click.command()
@click.argument("checkpoint", metavar="CKPT", type=click.Path(path_type=Path))
@click.option(
    "--adapter",
    "adapters",
    multiple=True,
    metavar="NAME=DIR",
    help="Name and folder of a LoRA adapter of CKPT to serve as well. Repeatable.",
)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=8000,
    show_default=True,
    help="TCP port of the server.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Network address on which the server listens. Addresses other than loopback require a key in the variable VLLM_API_KEY.",
)
@click.option(
    "--gpus",
    type=click.IntRange(0, 64),
    default=1,
    show_default=True,
    help="Number of GPUs for the model; 0 for a CPU build of vLLM.",
)
@click.option(
    "--max-length",
    type=click.IntRange(256),
    help="Maximum number of tokens of a question with its answer.  [default: 32768, or the model's limit if that is less]",
)
@click.option(
    "--python",
    type=click.Path(path_type=Path),
    default=sys.executable,
    show_default="the one that runs unreel",
    help="Python interpreter of the environment with vLLM.",
)
@json_option
def serve(  # noqa: PLR0913  one parameter for each option
    *,
    checkpoint: Path,
    adapters: tuple[str, ...],
    port: int,
    host: str,
    gpus: int,
    max_length: int | None,
    python: Path,
    as_json: bool,
) -> None:
    """Serve the checkpoint or adapter CKPT with vLLM, and print its name for --model.

    Downloads nothing, runs no code of the checkpoint, and listens on loopback. Runs until Ctrl-C or
    SIGTERM, then exits with status 0 and leaves no process behind.
    """
    from unreel.reviewers.local.vllm_plan import VllmServerSettings, plan_vllm_server
    from unreel.reviewers.local.vllm_server import (
        find_vllm_installation,
        require_safe_serving_address,
    )

    settings = VllmServerSettings(host=host, port=port, gpus=gpus, max_length=max_length)
    plan = plan_vllm_server(checkpoint, place=settings, adapters=_parse_adapter_options(adapters))
    engine = find_vllm_installation(python, plan)
    require_safe_serving_address(settings)
    for remark in plan.remarks:
        print_message(f"unreel: {remark}")
    _run_vllm_server(plan, engine, as_json=as_json)


def _run_vllm_server(plan: "VllmServerPlan", engine: "VllmInstallation", *, as_json: bool) -> None:
    from unreel.reviewers.local.vllm_server import run_vllm_server

    with ExitStack() as stack:
        with ProgressMeter() as meter:
            meter.tell(f"starting vLLM {engine.version}")
            server = stack.enter_context(run_vllm_server(plan, engine, tell=meter.tell))
        try:
            _print_served_models(plan, engine, as_json=as_json)
            SILENCE.stop()
            server.wait()
        except StopSignalReceived:
            print_message("unreel: ending the server")


def _print_served_models(
    plan: "VllmServerPlan", engine: "VllmInstallation", *, as_json: bool
) -> None:
    if as_json:
        served = [
            {
                "model": _format_model_address(model, plan),
                "show": model.forms,
                "box_space": model.box_spaces,
                "taught": () if model.taught is None else model.taught.instruments,
            }
            for model in plan.models
        ]
        print_json(
            {
                "vllm": engine.version,
                "address": plan.place.url,
                "models": served,
                "remarks": plan.remarks,
            }
        )
        return
    print_message(f"vLLM {engine.version} serves at {plan.place.url}. Ctrl-C ends it. Use it with:")
    for model in plan.models:
        for form in model.forms:
            for options in _iter_protocol_options(model):
                space = model.box_spaces.get(form)
                boxes = f" --box-space {shlex.quote(space)}" if space else ""
                echo(f"--model {_format_model_address(model, plan)} --show {form}{boxes}{options}")


def _format_model_address(model: "ServedModel", plan: "VllmServerPlan") -> str:
    return f"vllm/{model.name}@{plan.place.url}/v1"


def _iter_protocol_options(model: "ServedModel") -> Iterator[str]:
    """Yield options for each protocol a model was trained on; one empty text if unreel did not train it."""
    if model.taught is None or not model.taught.instruments:
        yield ""
        return
    for taught in model.taught.instruments:
        keys = taught.condition.model_dump()
        condition = ",".join(f"{name}={value}" for name, value in keys.items() if value is not None)
        yield f" --protocol {taught.protocol} --condition {condition}"


def _parse_adapter_options(typed: tuple[str, ...]) -> dict[str, Path]:
    folders: dict[str, Path] = {}
    for text in typed:
        name, _, folder = text.partition("=")
        option, problem = "--adapter", f"cannot use {text!r}"
        if not name or not folder:
            remedy = "Write NAME=DIR, for example --adapter strict=runs/strict/model"
            raise InvalidSettingError(option, problem, remedy)
        if name in folders:
            remedy = f"Name each differently: {name} is {folders[name]} already"
            raise InvalidSettingError(option, problem, remedy)
        folders[name] = Path(folder)
    return folders
