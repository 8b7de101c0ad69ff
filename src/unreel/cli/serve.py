"""`unreel serve`: run a vLLM server with a checkpoint until the command is stopped."""

import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from unreel.api import serving as api
from unreel.cli.options import settings_options
from unreel.cli.output import SILENCE, echo, json_option, print_json, print_message
from unreel.cli.process_signals import StopSignalReceived
from unreel.cli.progress import ProgressMeter

if TYPE_CHECKING:
    from unreel.reviewers.local.vllm_plan import ServedModel, VllmServerPlan
    from unreel.reviewers.local.vllm_server import VllmInstallation


@click.command()
@settings_options(api.ServeSettings)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the command of vLLM without starting it, and download nothing.",
)
@json_option
def serve(settings: api.ServeSettings, *, dry_run: bool, as_json: bool) -> None:
    """Serve the checkpoint or adapter CKPT with vLLM, and print its name for --model.

    CKPT is a folder, or a name of `unreel models list`, whose weights are downloaded to the cache of
    the Hugging Face hub. Runs no code of the checkpoint, and listens on loopback. Runs until Ctrl-C
    or SIGTERM, then exits with status 0 and leaves no process behind.
    """
    if dry_run:
        echo(api.format_server_command(settings, print_message))
        _print_named_model(settings, "Once it runs")
        return
    with ExitStack() as stack:
        with ProgressMeter() as meter:
            starting = api.start_server(settings, tell=meter.tell, on_note=print_message)
            server, plan, installation = stack.enter_context(starting)
        try:
            _print_served_models(plan, installation, as_json=as_json)
            _print_named_model(settings, "With the settings of its owner")
            SILENCE.stop()
            server.wait()
        except StopSignalReceived:
            print_message("unreel: ending the server")


def _print_named_model(settings: api.ServeSettings, when: str) -> None:
    """Print the option that asks a checkpoint of the catalogue with the settings of its owner."""
    if (entry := api.find_catalogue_model(settings)) is not None:
        url = settings.build_server_settings().url
        print_message(f"{when}: --model {entry.name}@{url}/v1")


def _print_served_models(
    plan: "VllmServerPlan", installation: "VllmInstallation", *, as_json: bool
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
                "vllm": installation.version,
                "address": plan.place.url,
                "models": served,
                "remarks": plan.remarks,
            }
        )
        return
    print_message(
        f"vLLM {installation.version} serves at {plan.place.url}. Ctrl-C ends it. Use it with:"
    )
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
    for input_spec in model.taught.instruments:
        keys = input_spec.condition.model_dump()
        condition = ",".join(f"{name}={value}" for name, value in keys.items() if value is not None)
        yield f" --protocol {input_spec.protocol} --condition {condition}"
