"""Sandbox for untrusted files: each file is opened in a confined child of a preloaded process."""

from unreel.media.sandbox.file_sandbox import FileSandbox
from unreel.media.sandbox.protection import LAYERS, REMEDIES, SandboxLimits

__all__ = ["LAYERS", "REMEDIES", "FileSandbox", "SandboxLimits"]
