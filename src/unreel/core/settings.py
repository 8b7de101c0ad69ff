"""The one place that reads the environment; docs/reference/settings.md lists the variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields

from unreel.core.errors import InvalidSettingError

PREFIX = "UNREEL_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything the environment can change, checked."""

    media_seconds: int = 15
    media_mb: int = 512
    media_pixels: int = 7680 * 4320
    slow: int = 0


def read_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """Settings from `environment` (the process's own by default); an unknown name is an error."""
    given = os.environ if environment is None else environment
    known = {PREFIX + field.name.upper(): field.name for field in fields(Settings)}
    values: dict[str, int] = {}
    for variable in sorted(name for name in given if name.startswith(PREFIX)):
        if variable not in known:
            remedy = f"Unset it, or use one of: {', '.join(known)}"
            raise InvalidSettingError(variable, "no such setting", remedy)
        if not given[variable].isdecimal():
            remedy = "Give a whole number"
            raise InvalidSettingError(variable, f"cannot use {given[variable]!r}", remedy)
        values[known[variable]] = int(given[variable])
    return Settings(**values)


def read_secret(variable: str, environment: Mapping[str, str] | None = None) -> str | None:
    """The key in `variable`, or None where it is not set. Pass it on; never store or print it."""
    given = os.environ if environment is None else environment
    return given.get(variable) or None
