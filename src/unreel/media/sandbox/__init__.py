"""Untrusted files, opened in a confined child that is forked for each of them from a warm zygote."""

from unreel.media.sandbox.call import Outcome
from unreel.media.sandbox.limits import Limits, Usage
from unreel.media.sandbox.protection import LAYERS, REMEDIES, Protection
from unreel.media.sandbox.runner import Sandbox

__all__ = ["LAYERS", "REMEDIES", "Limits", "Outcome", "Protection", "Sandbox", "Usage"]
