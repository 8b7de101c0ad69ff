"""`unreel doctor`: check the installation on this machine, and print a fix for each problem."""

import os
import platform
import re
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from urllib.parse import urlsplit

import click

from unreel.cli.output import echo, json_option, print_json, print_message
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
_SANDBOX = "Open files only from a machine that has it, or your own files with --trusted"
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


@click.command()
@click.option(
    "--store",
    metavar="S3://BUCKET/PREFIX",
    help="Folder or s3:// prefix to test as well: connection, write access and locking.",
)
@json_option
def doctor(*, store: str | None, as_json: bool) -> None:
    """Check the installation, and print how to fix what does not work.

    Exits with status 1 if untrusted files cannot be opened safely, or if an object store that is
    configured or named with --store cannot be used. Extras are optional.
    """
    settings = read_environment_settings()
    layers, problem = _probe_sandbox_layers()
    extras = [*_iter_extra_statuses()]
    ways = [*_iter_provider_statuses()]
    store_check = _check_object_store(store, settings)
    if as_json:
        print_json(
            {
                "unreel": version("unreel"),
                "python": platform.python_version(),
                "system": platform.platform(),
                "processors": os.cpu_count(),
                "sandbox": {"active": sorted(layers), "problem": problem},
                "cage": {"problem": find_program_sandbox_problem()[0]},
                "extras": {extra.name: not extra.missing for extra in extras},
                "providers": ways,
                "store": store_check,
            }
        )
    else:
        _print_doctor_report(layers, extras, ways, store_check)
        if problem:
            print_message(f"unreel: {problem}")
    sound = set(LAYERS) <= layers and (store_check is None or not store_check.problem)
    sys.exit(0 if sound else 1)


def _print_doctor_report(
    layers: frozenset[str],
    extras: list[PackageExtraStatus],
    statuses: list[ModelProviderStatus],
    store: ObjectStoreStatus | None,
) -> None:
    echo(f"unreel {version('unreel')}, Python {platform.python_version()}")
    echo(f"{platform.platform()}, {os.cpu_count()} processors")
    echo("", "Protection against untrusted files")
    for layer in LAYERS:
        remedy = REMEDIES.get(layer, _SANDBOX)
        _print_check_line(layer, "" if layer in layers else f"{remedy}.", needed=True)
    _print_check_line(
        "bubblewrap, for `command:` reviewers", find_program_sandbox_problem()[1], needed=False
    )
    echo("", "Optional parts")
    for extra in extras:
        _print_check_line(f"unreel[{extra.name}]: {extra.brings}", extra.remedy, needed=False)
    echo("", "Available models")
    for way in statuses:
        echo(f"  {'yes' if way.is_open else 'no '}  {way}")
    echo("", "Object store")
    if store is None:
        echo("  -    not tried: name a bucket with --store s3://bucket/prefix")
    else:
        _print_check_line(store.place, store.problem, needed=True)


def _print_check_line(what: str, remedy: str, *, needed: bool) -> None:
    if not remedy:
        echo(f"  yes  {what}")
    else:
        echo(f"  {'NO ' if needed else 'no '}  {what}", f"       {remedy}")


def _probe_sandbox_layers() -> tuple[frozenset[str], str]:
    try:
        with FileSandbox(without_seccomp=True) as sandbox:
            return sandbox.protection(), ""
    except SandboxError as error:
        return frozenset(), str(error)


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
