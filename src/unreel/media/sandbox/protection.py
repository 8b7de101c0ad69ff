"""Limits, resource usage and confinement layers of the sandbox, with advice for a missing layer."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from unreel.core.errors import InvalidValueError, SandboxError

MIB = 1024 * 1024
SMALLEST_MB = 256
"""Minimum memory limit in MiB: a warm child maps about 250 MB before it reads a byte, so less decodes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxLimits:
    """Limits of time, memory and reply size of one child, which is killed if it exceeds one."""

    seconds: float = 15
    """Timeout in seconds of wall-clock time, from the start of the child to the complete reply."""
    memory_mb: int = 512
    """Maximum memory of the child in MiB, including the decoder's own code."""
    reply_bytes: int = 264 * MIB
    """Maximum size in bytes of a reply, or of one part of it: the header and all blobs."""

    def __post_init__(self) -> None:
        if self.seconds <= 0 or self.memory_mb < SMALLEST_MB or self.reply_bytes <= 0:
            raise InvalidValueError(
                f"limits must be seconds > 0, memory_mb >= {SMALLEST_MB} and reply_bytes > 0, not "
                f"{self.seconds}, {self.memory_mb} and {self.reply_bytes}"
            )


LAYERS = ("no-new-privileges", "no-capabilities", "undumpable", "rlimits", "landlock", "seccomp")

REMEDIES: Mapping[str, str] = {
    "landlock": "Use a kernel of 5.13 or later with Landlock switched on, and pip install landlock",
    "seccomp": "Install libseccomp2, for example apt-get install libseccomp2, and pip install pyseccomp",
}

NEEDED = "seccomp"
"""Required layer: without it, only one other layer restricts a file that takes over its child."""

_LOG = logging.getLogger(__name__)


@cache
def _warn_once(text: str) -> None:
    _LOG.warning("%s", text)


def require_sandbox_layers(layers: Sequence[str], *, without_seccomp: bool) -> None:
    """Require seccomp unless `without_seccomp`, and log a warning once for each missing layer.

    Raise `SandboxError` if the machine lacks seccomp, and `without_seccomp` is false.
    """
    if NEEDED in layers and not without_seccomp:
        raise SandboxError(
            "seccomp, which keeps a hostile file from the rest of this machine, is missing here. "
            f"{REMEDIES[NEEDED]}, or do without it by UNREEL_MEDIA_WITHOUT_SECCOMP=1"
        )
    for layer in layers:
        _warn_once(
            f"unreel: untrusted files are opened without {layer}, which this machine lacks: protection "
            f"against hostile files is weaker. {REMEDIES[layer]}"
        )
