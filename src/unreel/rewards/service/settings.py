"""Settings of the reward service."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, ConfigDict, PlainValidator

from unreel.core.errors import InvalidSettingError, UnknownNameError
from unreel.core.registry import LazyImport
from unreel.protocols.protocol import REVIEWED, Mode
from unreel.reviewers.contract import Reviewer
from unreel.rewards.guards.result import MEANINGS
from unreel.webapp.tokens import TokenSettings, read_tokens

_MB = 1 << 20
DIALECTS = {
    "unirl": LazyImport("unreel.rewards.trainers.unirl:build_unirl_router", "reward"),
    "flow-factory": LazyImport(
        "unreel.rewards.trainers.flow_factory:build_flow_factory_router", "reward"
    ),
    "pickle": LazyImport("unreel.rewards.trainers.pickled:build_pickle_router", "reward"),
    "pickle-remote": LazyImport(
        "unreel.rewards.trainers.pickled:build_remote_pickle_router", "reward"
    ),
}
"""Functions that return a service's routes for a trainer's request format; lazy, as they import the service."""

ModelOrReviewer = Annotated[str | Reviewer, PlainValidator(str)]
"""Name of a model, or in Python a reviewer object; a configuration file gives names only."""


def _read_token_file(value: object) -> object:
    return read_tokens(Path(value)) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardServiceSettings:
    """Settings of one reward service; all its replicas have the same settings."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")
    models: Sequence[ModelOrReviewer]
    protocols: Sequence[str] = REVIEWED
    condition: Mapping[str, str] = field(default_factory=dict)
    parser: Mode = "lenient"
    reviewer: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of the recipe section `[reviewer]`."""
    trusted: bool = False
    calibrations: tuple[Path, ...] = ()
    held_out: Sequence[ModelOrReviewer] = ()
    """Reviewers whose reward is logged and never returned."""
    store: str = "reward-cache.sqlite"
    """Path of an SQLite file, or URL of a PostgreSQL database."""
    ask_once: bool = False
    """Whether a question whose process ended fails with `worker-died`, instead of being asked again."""
    lease_s: float = 15.0
    """Seconds without a heartbeat after which a process counts as ended."""
    tokens: Annotated[tuple[TokenSettings, ...], BeforeValidator(_read_token_file)] = ()
    """Access tokens, or the path of their file; without tokens every caller is allowed, on loopback only."""
    roots: tuple[Path, ...] = ()
    hosts: tuple[str, ...] = ()
    """Origins from which a `url` may be fetched, for example `https://clips.example.org`."""
    dialects: tuple[str, ...] = ()
    log: Path | None = None
    stop_on: tuple[str, ...] = ()
    """Guards whose alarm makes the service refuse requests, or `any`."""
    canaries: Path | None = None
    """Path of a benchmark with injected twins."""
    canary_rate: float = 0.02
    """Probability that a new clip is followed by a pair of canaries."""
    max_request_bytes: int = 256 * _MB
    max_clip_bytes: int = 64 * _MB
    max_held_bytes: int = 2048 * _MB
    """Maximum total size in bytes of all requests in memory."""
    max_items: int = 64
    max_compared: int = 16
    max_pending: int = 512
    """Maximum number of clips that are scored or queued; further ones are refused with status 429."""
    upload_s: float = 60.0
    deadline_s: float = 120.0
    """Default and maximum timeout of a request."""

    def __post_init__(self) -> None:
        guarded = {"--held-out": self.held_out, "--canaries": self.canaries}
        for setting, value in (guarded | {"--stop-on": self.stop_on}).items():
            if value and self.log is None:
                raise InvalidSettingError(setting, "requires --log", "Give --log FILE")
        for name in self.stop_on:
            if name not in {*MEANINGS, "any"}:
                raise UnknownNameError("guard", name, [*MEANINGS, "any"])
        for name in self.dialects:
            if name not in DIALECTS:
                raise InvalidSettingError(
                    "--dialect", f"no dialect is named {name!r}", f"Known: {', '.join(DIALECTS)}"
                )
