"""unreel tells whether a video looks AI-generated, where, when and why.

The words of the domain are here, and the verbs: `review`, `evaluate`, `open_run`, `score`, `curate`,
`open_benchmark`, `open_media`. A verb is loaded when it is first used.
"""

import sys
from importlib import import_module
from inspect import Signature, signature
from types import ModuleType
from typing import TYPE_CHECKING, Any

from unreel.core.answer import Reply, Usage
from unreel.core.box import Box
from unreel.core.clip import Clip, ClipId, Generated, Origin, Real
from unreel.core.errors import UnreelError
from unreel.core.estimate import Coverage, Estimate, Measured, Metric, Scorecard, Unmeasured
from unreel.core.facts import AudioFacts, ClipFacts, VideoFacts
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Label, Pair, Rating, Vote
from unreel.core.question import Condition, Instrument, Question
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace
from unreel.core.verdict import (
    Position,
    PreferenceVerdict,
    RealismVerdict,
    RealityVerdict,
    TraceVerdict,
    Unparsed,
    UnparsedReason,
    Verdict,
)

if TYPE_CHECKING:
    from unreel.evaluate.review import Review
    from unreel.reviewers.contract import Reviewer
    from unreel.verbs.curating import curate
    from unreel.verbs.opening import open_benchmark, open_media
    from unreel.verbs.reviewing import review, review_async
    from unreel.verbs.running import Run, evaluate, open_run
    from unreel.verbs.scoring import score

__all__ = [
    "AudioFacts",
    "Box",
    "BoxAt",
    "Category",
    "Clip",
    "ClipFacts",
    "ClipId",
    "Condition",
    "Coverage",
    "Estimate",
    "Failure",
    "FailureReason",
    "Generated",
    "Instrument",
    "Label",
    "Measured",
    "Metric",
    "Origin",
    "Pair",
    "Position",
    "PreferenceVerdict",
    "Question",
    "Rating",
    "Real",
    "RealismVerdict",
    "RealityVerdict",
    "Reply",
    "Review",
    "Reviewer",
    "Run",
    "Scorecard",
    "TimeSpan",
    "Trace",
    "TraceVerdict",
    "Unmeasured",
    "Unparsed",
    "UnparsedReason",
    "UnreelError",
    "Usage",
    "Verdict",
    "VideoFacts",
    "Vote",
    "curate",
    "evaluate",
    "open_benchmark",
    "open_media",
    "open_run",
    "review",
    "review_async",
    "score",
]

_LAZY = {
    "Review": "unreel.evaluate.review",
    "Reviewer": "unreel.reviewers.contract",
    "Run": "unreel.verbs.running",
    "curate": "unreel.verbs.curating",
    "evaluate": "unreel.verbs.running",
    "open_benchmark": "unreel.verbs.opening",
    "open_media": "unreel.verbs.opening",
    "open_run": "unreel.verbs.running",
    "review": "unreel.verbs.reviewing",
    "review_async": "unreel.verbs.reviewing",
    "score": "unreel.verbs.scoring",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


class _Job(ModuleType):
    """A folder that bears the name of a verb: calling it calls the verb."""

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self._verb(*given, **named)

    @property
    def __signature__(self) -> Signature:
        return signature(self._verb)

    @property
    def _verb(self) -> Any:
        name = self.__name__.rpartition(".")[2]
        return getattr(import_module(_LAZY[name]), name)


class _Package(ModuleType):
    """This package. `unreel.evaluate` is a folder and a verb, whichever of them is met first."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _LAZY and isinstance(value, ModuleType):
            value.__class__ = _Job
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
