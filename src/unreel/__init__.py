"""unreel tells whether a video looks AI-generated, where, when and why.

The words of the domain are here; the jobs are the commands of `unreel --help`.
"""

from unreel.core.answer import Answer, Reply, Usage
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

__all__ = [
    "Answer",
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
]
