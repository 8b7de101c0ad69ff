"""Confinement layers of a child, with advice for a missing one."""

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from unreel.core.errors import SandboxError

LAYERS: Final = (
    "no-new-privileges",
    "no-capabilities",
    "undumpable",
    "rlimits",
    "landlock",
    "seccomp",
)
"""All that can stand between a child and this machine."""

REMEDIES: Final[Mapping[str, str]] = {
    "landlock": "Use a kernel of 5.13 or later with Landlock switched on, and pip install landlock",
    "seccomp": "Install libseccomp2, for example apt-get install libseccomp2, and pip install pyseccomp",
}
"""What brings a layer that a machine may lack."""

NEEDED: Final = "seccomp"
"""Without it a file that takes over its child meets one wall only."""

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProtectionReport:
    """Effective layers on this machine, each tested by a child."""

    active: frozenset[str]

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the layers of `LAYERS` that this machine cannot provide."""
        return tuple(layer for layer in LAYERS if layer not in self.active)


class _WarnOnce:
    """Says a thing once in the life of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._said: set[str] = set()

    def say(self, text: str) -> None:
        with self._lock:
            if text not in self._said:
                self._said.add(text)
                _LOG.warning("%s", text)


_CRIER: Final = _WarnOnce()


def accept_missing(layers: Sequence[str], *, without_seccomp: bool) -> None:
    """Report the missing layers of this machine once; without seccomp continue only if allowed.

    Raises:
        SandboxError: It lacks seccomp.
    """
    if NEEDED in layers and not without_seccomp:
        problem = (
            "seccomp, which keeps a hostile file from the rest of this machine, is missing here. "
            f"{REMEDIES[NEEDED]}, or do without it by UNREEL_MEDIA_WITHOUT_SECCOMP=1"
        )
        raise SandboxError(problem)
    for layer in layers:
        _CRIER.say(
            f"unreel: strangers' files are opened without {layer}, which this machine lacks: a hostile "
            f"one has a wall less before it. {REMEDIES[layer]}"
        )
