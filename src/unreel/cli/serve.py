"""`unreel serve`: run a vLLM server with a checkpoint until the command is stopped."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from unreel.cli.output import SILENCE, echo, json_option, print_json, print_message
from unreel.cli.process_signals import StopSignalReceived
from unreel.cli.progress import ProgressMeter
from unreel.core.errors import InvalidSettingError

if TYPE_CHECKING:
    from unreel.catalogue.entries import CatalogueModel
    from unreel.reviewers.local.vllm_plan import ServedModel, VllmServerPlan, VllmServerSettings
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
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the command of vLLM without starting it. CKPT may then also be a name of `unreel models list`.",
)
@json_option
def serve(
    *,
    checkpoint: Path,
    adapters: tuple[str, ...],
    port: int,
    host: str,
    gpus: int,
    max_length: int | None,
    python: Path,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Serve the checkpoint or adapter CKPT with vLLM, and print its name for --model.

    Downloads nothing, runs no code of the checkpoint, and listens on loopback. Runs until Ctrl-C or
    SIGTERM, then exits with status 0 and leaves no process behind.
    """
    from unreel.catalogue.entries import find_named_checkpoint, list_model_names
    from unreel.reviewers.local.vllm_plan import VllmServerSettings, plan_vllm_server
    from unreel.reviewers.local.vllm_server import (
        VLLM_MODULE,
        find_vllm_installation,
        require_safe_serving_address,
    )

    settings = VllmServerSettings(host=host, port=port, gpus=gpus, max_length=max_length)
    entry = None if checkpoint.exists() else find_named_checkpoint(str(checkpoint))
    if entry is None and str(checkpoint) in list_model_names() and not checkpoint.exists():
        raise InvalidSettingError(
            "CKPT",
            f"{checkpoint} has no id on the Hugging Face hub, or several",
            "Name a folder with the checkpoint",
        )
    if entry is not None:
        if not dry_run:
            raise InvalidSettingError(
                "CKPT",
                f"{entry.name} is a name of the catalogue, and nothing is downloaded",
                "Add --dry-run to print the command, or name a folder with the checkpoint",
            )
        require_safe_serving_address(settings)
        _print_named_command(entry, settings)
        return
    folders: dict[str, Path] = {}
    for text in adapters:
        name, _, folder = text.partition("=")
        option, problem = "--adapter", f"cannot use {text!r}"
        if not name or not folder:
            raise InvalidSettingError(
                option, problem, "Write NAME=DIR, for example --adapter strict=runs/strict/model"
            )
        if name in folders:
            raise InvalidSettingError(
                option, problem, f"Name each differently: {name} is {folders[name]} already"
            )
        folders[name] = Path(folder)
    plan = plan_vllm_server(checkpoint, settings=settings, adapters=folders)
    if dry_run:
        typed = [str(python), "-m", VLLM_MODULE, "--model", str(plan.base), *plan.arguments]
        echo(shlex.join(typed))
        return
    engine = find_vllm_installation(python, plan)
    require_safe_serving_address(settings)
    for remark in plan.remarks:
        print_message(f"unreel: {remark}")
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


def _print_named_command(entry: "CatalogueModel", place: "VllmServerSettings") -> None:
    """Print the command that serves a checkpoint of the catalogue, and its name for --model."""
    from unreel.reviewers.config import ReviewerSection
    from unreel.reviewers.local.checkpoint import FamilyName
    from unreel.reviewers.local.vllm_plan import build_vllm_network_options

    (hub_id,) = (entry.hub_ids and entry.hub_ids.value) or ()
    stated = entry.max_length and entry.max_length.setting
    is_family_served = ReviewerSection(model=entry.name).family in get_args(FamilyName)
    is_known = (
        bool(stated) or is_family_served if entry.serve is None else bool(entry.serve.setting)
    )
    if not is_known:
        raise InvalidSettingError(
            "CKPT",
            f"how vLLM serves {entry.name} is not stated",
            f"`unreel models show {entry.name}` shows what is known",
        )
    max_length = place.max_length or stated
    arguments = [
        *build_vllm_network_options(place),
        *("--generation-config", "vllm"),
        *(() if max_length is None else ("--max-model-len", str(max_length))),
        *(("--tensor-parallel-size", str(place.gpus)) if place.gpus > 1 else ()),
        *((entry.serve and entry.serve.setting) or ()),
    ]
    if entry.revision is None or entry.revision.setting is None:
        print_message(f"unreel: the revision of {hub_id} is not stated: this serves the newest one")
    else:
        arguments = ["--revision", entry.revision.setting, *arguments]
    echo(shlex.join(["vllm", "serve", hub_id, *arguments]))
    print_message(f"Once it runs: --model {entry.name}@{place.url}/v1")


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
