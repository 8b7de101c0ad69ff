"""Sandbox for untrusted files: each file is opened in a confined child of a preloaded process."""

from unreel.media.sandbox.file_sandbox import FileSandbox
from unreel.media.sandbox.protection import (
    LAYERS,
    REMEDIES,
    SandboxChildUsage,
    SandboxLimits,
    SandboxProtectionReport,
)
from unreel.media.sandbox.sandbox_call import SandboxCallOutcome

__all__ = [
    "LAYERS",
    "REMEDIES",
    "FileSandbox",
    "SandboxCallOutcome",
    "SandboxChildUsage",
    "SandboxLimits",
    "SandboxProtectionReport",
]
