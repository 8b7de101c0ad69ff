"""The only module that reads the environment; docs/reference/settings.md lists the variables."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from unreel.core.errors import InvalidSettingError, suggest_names

PREFIX = "UNREEL_"
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_STATE = "XDG_STATE_HOME"
_DATA = "XDG_DATA_HOME"
_CACHE = "XDG_CACHE_HOME"
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_KEY = re.compile(r"(KEY|KEY_ID|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS|HEADERS)$")
_INHERITED_VARIABLE = re.compile(
    # user, language, time zone, paths of programs and libraries
    r"HOME|USER|LOGNAME|SHELL|TERM|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|PATH|LD_LIBRARY_PATH|VIRTUAL_ENV"
    r"|XDG_(CACHE|CONFIG|DATA|STATE|RUNTIME)_(HOME|DIR)|SSL_CERT_(FILE|DIR)|NO_PROXY|no_proxy"
    # processors, GPUs and their libraries
    r"|(OMP|GOMP|KMP|MKL|OPENBLAS|NUMEXPR|CUDA|NVIDIA|NCCL|HIP|ROCR|HSA|TORCH|PYTORCH|TRITON)_\w+"
    r"|HF_(HOME|HUB_CACHE|HUB_OFFLINE|DATASETS_CACHE)|TRANSFORMERS_(CACHE|OFFLINE)|TOKENIZERS_PARALLELISM"
    # settings of the servers
    r"|(VLLM|LABEL_STUDIO)_\w+"
)
"""Pattern of the variables that a child process may inherit."""
_SECRETS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentSettings:
    """Validated settings from the environment variables `UNREEL_*`."""

    media_seconds: int = 15
    media_mb: int = 512
    media_pixels: int = 7680 * 4320
    media_without_seccomp: int = 0
    """Whether untrusted files are opened on a machine without seccomp: 1 or 0."""
    annotate_pace: int = 30
    """Timeout of rendering an annotated copy, in seconds per second of its clip, in addition to `media_seconds`."""
    slow: int = 0
    key_hosts: str = ""
    """Hosts that may receive the key for custom servers, separated by commas."""
    s3_endpoint: str = ""
    """URL of the object store; empty for AWS."""
    s3_region: str = ""
    s3_role: int = 0
    """Whether the client of the object store looks for a role of the machine if no keys are set: 1 or 0."""
    fetch_from: str = ""
    """Stores and hosts that rows of a benchmark may name, separated by commas."""
    fetch_mb: int = 1024
    fetch_seconds: int = 60
    table_rows: int = 1_000_000
    """Maximum number of rows of a benchmark's table, and of files of a folder."""
    state: str = ""
    """Folder for state that must stay on this machine; empty for the user's default."""
    benchmarks: str = ""
    """Folder of downloaded public benchmarks; empty for the user's default."""
    cache: str = ""
    """Folder for files that can be fetched again; empty for the user's default."""
    prompts_from: str = "https://raw.githubusercontent.com"
    """URL of the server from which prompts of checkpoints are fetched."""
    ledger: str = field(default="", repr=False)
    """Address of the ledger of `unreel annotate`, including its password: never store or print it."""

    @property
    def benchmarks_folder(self) -> Path:
        """Return the folder with one folder for each downloaded public benchmark."""
        default = Path.home() / ".local" / "share" / "unreel" / "benchmarks"
        return Path(self.benchmarks) if self.benchmarks else default

    @property
    def state_folder(self) -> Path:
        """Return the folder of the start logs of runs on an object store."""
        return Path(self.state) if self.state else Path.home() / ".local" / "state" / "unreel"

    @property
    def seen_index(self) -> Path:
        """Return the file of the index of clips that were seen before, which reviews search."""
        return self.state_folder / "seen.sqlite"

    @property
    def cache_folder(self) -> Path:
        """Return the folder for files that can be fetched again."""
        return Path(self.cache) if self.cache else Path.home() / ".cache" / "unreel"


def read_environment_settings(environment: Mapping[str, str] | None = None) -> EnvironmentSettings:
    """Read the settings from `environment` (default: the process environment); reject unknown names."""
    environ = os.environ if environment is None else environment
    known = {PREFIX + setting.name.upper(): setting for setting in fields(EnvironmentSettings)}
    values: dict[str, Any] = {}
    if environ.get(_STATE):
        values["state"] = str(Path(environ[_STATE]) / "unreel")
    if environ.get(_DATA):
        values["benchmarks"] = str(Path(environ[_DATA]) / "unreel" / "benchmarks")
    if environ.get(_CACHE):
        values["cache"] = str(Path(environ[_CACHE]) / "unreel")
    for variable in sorted(name for name in environ if name.startswith(PREFIX)):
        if variable not in known:
            raise InvalidSettingError(
                variable,
                "no such setting",
                f"Unset it, or use another. {suggest_names(variable, list(known))}",
            )
        setting, text = known[variable], environ[variable]
        if not isinstance(setting.default, int):
            values[setting.name] = text.strip()
        elif text.isdecimal():
            values[setting.name] = int(text)
        else:
            raise InvalidSettingError(variable, f"cannot use {text!r}", "Give a whole number")
    return EnvironmentSettings(**values)


def read_secret_variable(variable: str, environment: Mapping[str, str] | None = None) -> str | None:
    """Read the key in `variable`; `None` if it is not set. Never store or print the key."""
    environ = os.environ if environment is None else environment
    return environ.get(variable) or None


def build_child_environment(
    fixed: Mapping[str, str],
    usual: Mapping[str, str],
    *,
    keep: frozenset[str] = frozenset(),
    environment: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the environment of a child process: variables of this one that never contain a key.

    `fixed` overrides existing variables, `usual` gives defaults. Other variables are included only
    if `keep` names them.
    """
    environ = os.environ if environment is None else environment
    open_ones = {
        name: value
        for name, value in environ.items()
        if name in keep or (_INHERITED_VARIABLE.fullmatch(name) and not _KEY.search(name))
    }
    return {**usual, **open_ones, **fixed}


def read_ray_address(environment: Mapping[str, str] | None = None) -> str:
    """Return the cluster to join from `RAY_ADDRESS`; empty if unset. Ray reads it itself as well."""
    environ = os.environ if environment is None else environment
    return environ.get("RAY_ADDRESS", "")


@contextmanager
def override_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables during the `with` block, for a library that reads only these."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def read_storage_options(
    settings: EnvironmentSettings, environment: Mapping[str, str] | None = None
) -> Mapping[str, str]:
    """Read the options that open the object store. They contain keys: never store or print them.

    Settings of unreel take precedence over the usual `AWS_*` variables. Without keys, requests are
    not signed, unless `s3_role` lets the client look for keys (see
    `unreel.engine.location.StorageLocation`). An endpoint without TLS is accepted only because the
    user names it.
    """
    environ = os.environ if environment is None else environment
    endpoint = settings.s3_endpoint or _select_first_value(environ, _ENDPOINTS)
    region = settings.s3_region or _select_first_value(environ, _REGIONS)
    options = {
        "aws_endpoint": endpoint,
        # A custom store rarely has regions, but its client requires one.
        "aws_region": region or ("us-east-1" if endpoint else ""),
        "allow_http": "true" if endpoint.startswith("http://") else "",
    }
    options |= {name.lower(): read_secret_variable(name, environ) or "" for name in _SECRETS}
    options["aws_skip_signature"] = "false" if settings.s3_role else ""
    return {name: value for name, value in options.items() if value}


def _select_first_value(environ: Mapping[str, str], variables: tuple[str, ...]) -> str:
    return next((environ[name] for name in variables if environ.get(name)), "")
