"""Sandbox for untrusted files: each is opened in a confined child of a preloaded process."""

from unreel.media.sandbox.call import SandboxCallOutcome
from unreel.media.sandbox.protection import (
    LAYERS,
    REMEDIES,
    SandboxChildUsage,
    SandboxLimits,
    SandboxProtectionReport,
)
from unreel.media.sandbox.runner import FileSandbox

__all__ = [
    "LAYERS",
    "REMEDIES",
    "FileSandbox",
    "SandboxCallOutcome",
    "SandboxChildUsage",
    "SandboxLimits",
    "SandboxProtectionReport",
]
