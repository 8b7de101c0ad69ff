"""Baseline reviewers that ignore the clip; every other reviewer should be better."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from unreel.core.answer import Reply
from unreel.core.content_ids import digest
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Label
from unreel.protocols.protocol import PROTOCOLS, get_protocol
from unreel.reviewers.contract import ClipInput, InputKind, ReviewRequest


def format_baseline_answer(request: ReviewRequest, p_generated: Sequence[float]) -> Reply | Failure:
    """Return a reply with each clip's `p_generated`; a failure if protocol or number of clips differs."""
    name = request.instrument.protocol
    if name in PROTOCOLS and get_protocol(name).n_clips == len(p_generated):
        return Reply(text=get_protocol(name).wording.phrase(p_generated, request.condition.prompt))
    detail = (
        f"not asked: no baseline can answer {request.instrument} about {len(p_generated)} clips"
    )
    return Failure(FailureReason.REQUEST_REJECTED, detail)


class _BlindReviewer:
    """Base of reviewers that need no part of a clip, draw no boxes and have nothing to close."""

    __slots__ = ()

    @property
    def wants(self) -> frozenset[InputKind]:
        return frozenset()

    def box_space(self, clip_input: ClipInput) -> str:  # noqa: ARG002  it draws no boxes
        return "unit"

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoinReviewer(_BlindReviewer):
    """Baseline with random answers, which depend only on the question and the seed."""

    seed: int = 0

    @property
    def name(self) -> str:
        return f"coin?seed={self.seed}" if self.seed else "coin"

    async def answer(self, request: ReviewRequest) -> Reply | Failure:
        generator = random.Random(digest("coin", str(self.seed), request.key))  # noqa: S311  no secret
        return format_baseline_answer(request, [generator.random() for _ in request.inputs])


@dataclass(frozen=True, slots=True)
class ConstantLabelReviewer(_BlindReviewer):
    """Baseline that gives every clip the same label; in a pair, the first clip gets it."""

    label: Label

    @property
    def name(self) -> str:
        return f"always-{self.label.value}"

    async def answer(self, request: ReviewRequest) -> Reply | Failure:
        p_generated = 1.0 if self.label is Label.GENERATED else 0.0
        return format_baseline_answer(request, [p_generated] * len(request.inputs))


def build_always_real_reviewer() -> ConstantLabelReviewer:
    """Return a reviewer that calls every clip real."""
    return ConstantLabelReviewer(Label.REAL)


def build_always_generated_reviewer() -> ConstantLabelReviewer:
    """Return a reviewer that calls every clip generated."""
    return ConstantLabelReviewer(Label.GENERATED)
