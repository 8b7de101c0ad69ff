"""Beliefs in the words that each instrument asks for, so that floors are read as models are."""

from collections.abc import Sequence

from unreel.core.answer import Reply
from unreel.core.failure import Failure, FailureReason
from unreel.protocols.protocol import PROTOCOLS, protocol
from unreel.reviewers.contract import ReviewRequest


def phrase(sheet: ReviewRequest, p_generated: Sequence[float]) -> Reply | Failure:
    """The answer of someone who holds each clip of `sheet` to be generated with that probability."""
    name = sheet.instrument.protocol
    if name in PROTOCOLS and protocol(name).n_clips == len(p_generated):
        return Reply(text=protocol(name).wording.phrase(p_generated, sheet.condition.prompt))
    asked = f"not asked: no baseline can answer {sheet.instrument} about {len(p_generated)} clips"
    return Failure(FailureReason.REQUEST_REJECTED, asked)
