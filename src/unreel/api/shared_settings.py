"""Settings that several commands share."""

from dataclasses import dataclass
from typing import Annotated, Literal

from unreel.core.command_options import Option

Engine = Literal["local", "ray"]
"""Name of an execution engine."""


@dataclass(frozen=True, kw_only=True)
class TrustSettings:
    """Settings of a command that opens clips."""

    trusted: bool = False
    """Decode video files without the sandbox, in the process of this command. Use it only for clips that you trust."""


@dataclass(frozen=True, kw_only=True)
class TableSettings:
    """Settings of a command that reads tables of clips."""

    allow_outside: bool = False
    """Allow tables of clips to name files outside the folder of the table. Use it only for tables that you trust."""


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """Settings of a command that runs a job over many clips."""

    engine: Engine = "local"
    """Execution engine. local: this process; ray: Ray Data (needs the extra `ray`)."""


@dataclass(frozen=True, kw_only=True)
class ResampleSettings:
    """Settings of a command that resamples scenes."""

    resamples: Annotated[int | None, Option(low=100)] = None
    """Number of bootstrap resamples of the scenes, for the confidence intervals.  [default: 2000]"""
