"""Untrusted files, opened in a confined child that is forked for each of them from a warm zygote."""

from unreel.media.sandbox.call import CallOutcome
from unreel.media.sandbox.limits import ChildUsage, SandboxLimits
from unreel.media.sandbox.protection import LAYERS, REMEDIES, ProtectionReport
from unreel.media.sandbox.runner import FileSandbox

__all__ = [
    "LAYERS",
    "REMEDIES",
    "CallOutcome",
    "ChildUsage",
    "FileSandbox",
    "ProtectionReport",
    "SandboxLimits",
]
