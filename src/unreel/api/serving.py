"""Serving of checkpoints with vLLM."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

from unreel.core.command_options import Option
from unreel.core.errors import InvalidSettingError

if TYPE_CHECKING:
    from unreel.catalogue.entries import CatalogueModel
    from unreel.reviewers.local.vllm_plan import VllmServerPlan, VllmServerSettings
    from unreel.reviewers.local.vllm_server import VllmInstallation, VllmServer


@dataclass(frozen=True, kw_only=True)
class ServeSettings:
    """Settings of `start_server` and `list_server_commands`."""

    checkpoint: Annotated[Path, Option(is_argument=True, metavar="CKPT", kind="path")]
    adapters: Annotated[tuple[str, ...], Option(name="--adapter", metavar="NAME=DIR")] = ()
    """Name and folder of a LoRA adapter of CKPT to serve as well. Repeatable."""
    port: Annotated[int, Option(low=1, high=65535)] = 8000
    """TCP port of the server."""
    host: str = "127.0.0.1"
    """Network address on which the server listens. Addresses other than loopback require a key in the variable VLLM_API_KEY."""
    gpus: Annotated[int, Option(low=0, high=64)] = 1
    """Number of GPUs for the model; 0 for a CPU build of vLLM."""
    max_length: Annotated[int | None, Option(low=256)] = None
    """Maximum number of tokens of a question with its answer.  [default: 32768, or the model's limit if that is less]"""
    python: Annotated[Path, Option(kind="path", default_text="the one that runs unreel")] = Path(
        sys.executable
    )
    """Python interpreter of the environment with vLLM."""

    def build_server_settings(self) -> "VllmServerSettings":
        """Return the settings of the server without its models."""
        from unreel.reviewers.local.vllm_plan import VllmServerSettings

        return VllmServerSettings(
            host=self.host, port=self.port, gpus=self.gpus, max_length=self.max_length
        )


def _plan_server(settings: ServeSettings) -> "VllmServerPlan":
    from unreel.reviewers.local.vllm_plan import plan_vllm_server

    folders: dict[str, Path] = {}
    for text in settings.adapters:
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
    server = settings.build_server_settings()
    return plan_vllm_server(settings.checkpoint, settings=server, adapters=folders)


def find_catalogue_model(settings: ServeSettings) -> "CatalogueModel | None":
    """Return the checkpoint of the catalogue that the settings name; `None` if they name a folder.

    Raises:
        InvalidSettingError: The checkpoint of that name has no id on the hub, or several.
    """
    from unreel.catalogue.entries import find_named_checkpoint, list_model_names

    checkpoint = settings.checkpoint
    if checkpoint.exists():
        return None
    entry = find_named_checkpoint(str(checkpoint))
    if entry is None and str(checkpoint) in list_model_names():
        raise InvalidSettingError(
            "CKPT",
            f"{checkpoint} has no id on the Hugging Face hub, or several",
            "Name a folder with the checkpoint",
        )
    return entry


def format_server_command(settings: ServeSettings, on_note: Callable[[str], None]) -> str:
    """Return the command of vLLM that serves a folder or a checkpoint of the catalogue."""
    from unreel.reviewers.local.vllm_server import VLLM_MODULE, require_safe_serving_address

    entry = find_catalogue_model(settings)
    if entry is not None:
        require_safe_serving_address(settings.build_server_settings())
        return _format_named_command(entry, settings, on_note)
    plan = _plan_server(settings)
    command = [str(settings.python), "-m", VLLM_MODULE, "--model", str(plan.base)]
    return shlex.join([*command, *plan.arguments])


def _format_named_command(
    entry: "CatalogueModel", settings: ServeSettings, on_note: Callable[[str], None]
) -> str:
    from unreel.reviewers.local.vllm_plan import build_named_vllm_options

    hub_id, revision, max_length, flags = _find_named_options(entry, settings, on_note)
    server = settings.build_server_settings()
    pinned = () if revision is None else ("--revision", revision)
    arguments = (*pinned, *build_named_vllm_options(server, max_length), *flags)
    return shlex.join(["vllm", "serve", hub_id, *arguments])


def _find_named_options(
    entry: "CatalogueModel", settings: ServeSettings, on_note: Callable[[str], None]
) -> tuple[str, str | None, int | None, tuple[str, ...]]:
    """Return the id on the hub, the revision, the maximum length and the flags of a checkpoint."""
    from unreel.reviewers.config import ReviewerSection
    from unreel.reviewers.local.checkpoint import FamilyName

    (hub_id,) = (entry.hub_ids and entry.hub_ids.value) or ()
    stated = None if entry.max_length is None else entry.max_length.setting
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
    revision = None if entry.revision is None else entry.revision.setting
    if revision is None:
        on_note(f"unreel: the revision of {hub_id} is not stated: this serves the newest one")
    flags = (entry.serve and entry.serve.setting) or ()
    return hub_id, revision, settings.max_length or stated, flags


def _plan_named_server(
    entry: "CatalogueModel",
    settings: ServeSettings,
    tell: Callable[[str], None],
    on_note: Callable[[str], None],
) -> "VllmServerPlan":
    """Download the weights of a checkpoint unless they are in the cache of the hub; plan its server."""
    from unreel.reviewers.local.checkpoint import download_checkpoint
    from unreel.reviewers.local.vllm_plan import plan_named_vllm_server

    if settings.adapters:
        raise InvalidSettingError(
            "--adapter", f"{entry.name} is served alone", "Name a folder with the checkpoint"
        )
    hub_id, revision, max_length, flags = _find_named_options(entry, settings, on_note)
    tell(f"downloading {hub_id}")
    return plan_named_vllm_server(
        hub_id,
        download_checkpoint(hub_id, revision),
        settings=settings.build_server_settings(),
        max_length=max_length,
        arguments=flags,
    )


@contextmanager
def start_server(
    settings: ServeSettings, *, tell: Callable[[str], None], on_note: Callable[[str], None]
) -> "Iterator[tuple[VllmServer, VllmServerPlan, VllmInstallation]]":
    """Start vLLM with a checkpoint, and yield the server, its plan and its installation.

    The weights of a checkpoint of the catalogue are downloaded at its revision.

    Raises:
        InvalidSettingError: How vLLM serves the checkpoint is not stated, or the address is not safe.
        UnreadableSourceError: The hub gives no access to the weights, or they are not safe to load.
    """
    from unreel.reviewers.local.vllm_server import (
        find_vllm_installation,
        require_safe_serving_address,
        run_vllm_server,
    )

    require_safe_serving_address(settings.build_server_settings())
    entry = find_catalogue_model(settings)
    if entry is None:
        plan = _plan_server(settings)
    else:
        find_vllm_installation(settings.python)  # before a download of many gigabytes
        plan = _plan_named_server(entry, settings, tell, on_note)
    installation = find_vllm_installation(settings.python, plan)
    for remark in plan.remarks:
        on_note(f"unreel: {remark}")
    tell(f"starting vLLM {installation.version}")
    with run_vllm_server(plan, installation, tell=tell) as server:
        yield server, plan, installation
