"""Check of the installation on this machine: protection, extras, model providers, object store."""

import os
import platform
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Annotated
from urllib.parse import urlsplit

from unreel.core.command_options import Option
from unreel.core.errors import SandboxError, UnreelError
from unreel.core.registry import LazyImport
from unreel.core.server_keys import parse_server_url
from unreel.core.settings import (
    EnvironmentSettings,
    read_environment_settings,
    read_secret_variable,
    read_storage_options,
)
from unreel.media.sandbox import LAYERS, REMEDIES, FileSandbox
from unreel.reviewers.endpoint.model_address import PROVIDERS
from unreel.reviewers.endpoint.servers import is_server_listening, list_server_models
from unreel.reviewers.external.program_sandbox import find_program_sandbox_problem

BRINGS: Mapping[str, str] = {
    "all": "every other extra",
    "annotate": "`unreel annotate`: campaigns in Label Studio",
    "curate": "`unreel curate`: raw video to a frozen benchmark",
    "desk": "`unreel desk`: a page where people check clips",
    "eval": "`unreel eval`: answers in tables, on disk or S3",
    "hub": "`unreel benchmarks get`: public benchmarks by name",
    "inspect": "the task `unreel/review` for inspect_ai",
    "local": "`--model local/FOLDER`: models on this machine",
    "pandas": "rows of a run as a data frame",
    "provenance": "Content Credentials (C2PA) next to a verdict",
    "ray": "`unreel eval --engine ray`",
    "review": "words over the picture and Content Credentials in `unreel review`",
    "reward": "`unreel reward`: rewards for trainers of generators",
    "sts": "`unreel score --sts`",
    "train": "`unreel train`: training on human judgements",
    "transnet": "a learned detector of cuts for `unreel curate`",
}
"""Purpose of an extra; an extra without a text is described by its packages."""
_NO_SANDBOX = "Open files only from a machine that has it, or your own files with --trusted"
_NEEDS = re.compile(r"(?P<name>[A-Za-z0-9._-]+).*extra == ['\"](?P<extra>[^'\"]+)['\"]")
_KNOCK_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageExtraStatus:
    """Status of one optional extra of the package, with its missing packages."""

    name: str
    missing: tuple[str, ...]
    """Packages of the extra that are not installed."""
    brings: str

    @property
    def remedy(self) -> str:
        """Return the `pip` command that installs an extra; empty if none of its packages is missing."""
        return f"pip install 'unreel[{self.name}]'" if self.missing else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectStoreStatus:
    """Result of testing an object store: its location, and the problem; "" if it is usable."""

    place: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProviderStatus:
    """Status of a model provider: whether its API key is set, and whether its local server answers."""

    provider: str
    variable: str | None
    has_key: bool
    address: str | None
    """URL of a server on this machine; `None` for other servers, which are not contacted."""
    answers: bool
    models: tuple[str, ...] = ()
    """Names of the models that the server lists."""

    @property
    def is_open(self) -> bool:
        """Return whether models of a provider seem usable: its local server answers, or its key is set."""
        return self.answers if self.address else self.has_key

    def __str__(self) -> str:
        if self.address:
            names = ", ".join(f"{self.provider}/{model}" for model in self.models)
            offers = f" offers {names}" if names else " answers, and lists no models without a key"
            return f"{self.provider}: a server at {self.address}{offers if self.answers else ''}"
        return f"{self.provider}: a key in {self.variable}"


@dataclass(frozen=True, kw_only=True)
class InstallationSettings:
    """Settings of `check_installation`."""

    store: Annotated[str | None, Option(metavar="S3://BUCKET/PREFIX")] = None
    """Folder or s3:// prefix to test as well: connection, write access and locking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallationCheck:
    """Result of `check_installation`."""

    layers: Mapping[str, str]
    """Remedy for each missing layer of the protection against untrusted files; "" for an active layer."""
    problem: str
    """Reason why no file can be opened safely; "" if files can be opened."""
    program_sandbox: tuple[str, str]
    """Reason why programs cannot be sandboxed, and its remedy; two "" if they can."""
    extras: tuple[PackageExtraStatus, ...]
    providers: tuple[ModelProviderStatus, ...]
    store: ObjectStoreStatus | None

    @property
    def is_usable(self) -> bool:
        """Return whether files are opened safely and the object store, if any, can be used."""
        return not any(self.layers.values()) and (self.store is None or not self.store.problem)

    def to_json(self) -> dict[str, object]:
        """Return the result with facts about this machine."""
        return {
            "unreel": version("unreel"),
            "python": platform.python_version(),
            "system": platform.platform(),
            "processors": os.cpu_count(),
            "sandbox": {
                "active": sorted(name for name, remedy in self.layers.items() if not remedy),
                "problem": self.problem,
            },
            "cage": {"problem": self.program_sandbox[0]},
            "extras": {extra.name: not extra.missing for extra in self.extras},
            "providers": self.providers,
            "store": self.store,
        }


def check_installation(settings: InstallationSettings) -> InstallationCheck:
    """Check the protection of files and programs, the extras, the model providers and the object store."""
    active: frozenset[str] = frozenset()
    problem = ""
    try:
        with FileSandbox(without_seccomp=True) as sandbox:
            active = sandbox.protection()
    except SandboxError as error:
        problem = str(error)
    return InstallationCheck(
        layers={
            layer: "" if layer in active else f"{REMEDIES.get(layer, _NO_SANDBOX)}."
            for layer in LAYERS
        },
        problem=problem,
        program_sandbox=find_program_sandbox_problem(),
        extras=tuple(_iter_extra_statuses()),
        providers=tuple(_iter_provider_statuses()),
        store=_check_object_store(settings.store, read_environment_settings()),
    )


def _iter_extra_statuses() -> Iterator[PackageExtraStatus]:
    needed: dict[str, list[str]] = {}
    for line in requires("unreel") or ():
        if match := _NEEDS.match(line):
            needed.setdefault(match["extra"], []).append(match["name"])
    for name, packages in sorted(needed.items()):
        missing = tuple(package for package in packages if not _is_package_installed(package))
        brings = BRINGS.get(name, ", ".join(packages))
        yield PackageExtraStatus(name=name, missing=missing, brings=brings)


def _is_package_installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def _iter_provider_statuses() -> Iterator[ModelProviderStatus]:
    for name, provider in PROVIDERS.items():
        variable, url = provider.key_variable, provider.base_url
        is_local = url is not None and parse_server_url(url).is_loopback
        if not (is_local or provider.needs_key):
            continue  # provider of any server, which has no address of its own
        address = url if is_local else None
        answers = address is not None and is_server_listening(parse_server_url(address))
        yield ModelProviderStatus(
            provider=name,
            variable=variable,
            has_key=variable is not None and read_secret_variable(variable) is not None,
            address=address,
            answers=answers,
            models=list_server_models(address) if address and answers else (),
        )


def _check_object_store(
    named: str | None, settings: EnvironmentSettings
) -> ObjectStoreStatus | None:
    storage = read_storage_options(settings)
    if named is not None:
        try:
            location = LazyImport("unreel.engine.location:resolve_location", "eval")(named, storage)
            LazyImport("unreel.engine.location:require_conditional_puts", "eval")(location)
        except UnreelError as error:
            return ObjectStoreStatus(place=named, problem=str(error))
        return ObjectStoreStatus(place=named, problem="")
    endpoint = storage.get("aws_endpoint")
    if endpoint is None:
        return None
    return ObjectStoreStatus(place=endpoint, problem=_find_connection_problem(endpoint))


def _find_connection_problem(endpoint: str) -> str:
    """Return the reason why the endpoint cannot be reached; empty if it can be reached."""
    address = urlsplit(endpoint)
    if not address.hostname:
        return "not an address. Write UNREEL_S3_ENDPOINT as http://host:port or https://host"
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        socket.create_connection((address.hostname, port), _KNOCK_S).close()
    except OSError as error:
        return (
            f"cannot be reached ({error.strerror or error}). Check the address and that the store "
            "runs; then try a bucket with --store"
        )
    return ""
