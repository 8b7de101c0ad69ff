"""unreel tells whether a video looks AI-generated, where, when and why.

The words of the domain are here, and the verbs: `review`, `evaluate`, `open_run`, `score`, `compare`,
`curate`, `open_benchmark`, `open_media`. Each name is loaded when it is first used.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unreel.benchmarks.entry import Entry, Rejected
    from unreel.benchmarks.opening import Benchmark
    from unreel.core.answer import Reply, Usage
    from unreel.core.box import Box
    from unreel.core.clip import Clip, ClipId, Generated, Origin, Real
    from unreel.core.comparison import Comparison, Comparisons, Difference
    from unreel.core.errors import (
        InvalidSettingError,
        InvalidValueError,
        MachineError,
        MediaError,
        MissingExtraError,
        SandboxError,
        UnknownNameError,
        UnreadableSourceError,
        UnreelError,
        UnsafeTargetError,
    )
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
    from unreel.engine.progress import Progress
    from unreel.evaluate.opinion import Opinion
    from unreel.evaluate.review import Review
    from unreel.media.reader import MediaReader
    from unreel.reviewers.contract import Exhibit, Material, Reviewer, Sheet, ShownFrame
    from unreel.verbs.comparing import compare
    from unreel.verbs.curating import Curated, curate
    from unreel.verbs.opening import open_benchmark, open_media
    from unreel.verbs.reviewing import review, review_async
    from unreel.verbs.running import Run, evaluate, open_run
    from unreel.verbs.scoring import score


__all__ = [
    "AudioFacts",
    "Benchmark",
    "Box",
    "BoxAt",
    "Category",
    "Clip",
    "ClipFacts",
    "ClipId",
    "Comparison",
    "Comparisons",
    "Condition",
    "Coverage",
    "Curated",
    "Difference",
    "Entry",
    "Estimate",
    "Exhibit",
    "Failure",
    "FailureReason",
    "Generated",
    "Instrument",
    "InvalidSettingError",
    "InvalidValueError",
    "Label",
    "MachineError",
    "Material",
    "Measured",
    "MediaError",
    "MediaReader",
    "Metric",
    "MissingExtraError",
    "Opinion",
    "Origin",
    "Pair",
    "Position",
    "PreferenceVerdict",
    "Progress",
    "Question",
    "Rating",
    "Real",
    "RealismVerdict",
    "RealityVerdict",
    "Rejected",
    "Reply",
    "Review",
    "Reviewer",
    "Run",
    "SandboxError",
    "Scorecard",
    "Sheet",
    "ShownFrame",
    "TimeSpan",
    "Trace",
    "TraceVerdict",
    "UnknownNameError",
    "Unmeasured",
    "Unparsed",
    "UnparsedReason",
    "UnreadableSourceError",
    "UnreelError",
    "UnsafeTargetError",
    "Usage",
    "Verdict",
    "VideoFacts",
    "Vote",
    "compare",
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
    "AudioFacts": "unreel.core.facts",
    "Benchmark": "unreel.benchmarks.opening",
    "Box": "unreel.core.box",
    "BoxAt": "unreel.core.trace",
    "Category": "unreel.core.trace",
    "Clip": "unreel.core.clip",
    "ClipFacts": "unreel.core.facts",
    "ClipId": "unreel.core.clip",
    "Comparison": "unreel.core.comparison",
    "Comparisons": "unreel.core.comparison",
    "Condition": "unreel.core.question",
    "Coverage": "unreel.core.estimate",
    "Curated": "unreel.verbs.curating",
    "Difference": "unreel.core.comparison",
    "Entry": "unreel.benchmarks.entry",
    "Estimate": "unreel.core.estimate",
    "Exhibit": "unreel.reviewers.contract",
    "Failure": "unreel.core.failure",
    "FailureReason": "unreel.core.failure",
    "Generated": "unreel.core.clip",
    "Instrument": "unreel.core.question",
    "InvalidSettingError": "unreel.core.errors",
    "InvalidValueError": "unreel.core.errors",
    "Label": "unreel.core.judgement",
    "MachineError": "unreel.core.errors",
    "Material": "unreel.reviewers.contract",
    "Measured": "unreel.core.estimate",
    "MediaError": "unreel.core.errors",
    "MediaReader": "unreel.media.reader",
    "Metric": "unreel.core.estimate",
    "MissingExtraError": "unreel.core.errors",
    "Opinion": "unreel.evaluate.opinion",
    "Origin": "unreel.core.clip",
    "Pair": "unreel.core.judgement",
    "Position": "unreel.core.verdict",
    "PreferenceVerdict": "unreel.core.verdict",
    "Progress": "unreel.engine.progress",
    "Question": "unreel.core.question",
    "Rating": "unreel.core.judgement",
    "Real": "unreel.core.clip",
    "RealismVerdict": "unreel.core.verdict",
    "RealityVerdict": "unreel.core.verdict",
    "Rejected": "unreel.benchmarks.entry",
    "Reply": "unreel.core.answer",
    "Review": "unreel.evaluate.review",
    "Reviewer": "unreel.reviewers.contract",
    "Run": "unreel.verbs.running",
    "SandboxError": "unreel.core.errors",
    "Scorecard": "unreel.core.estimate",
    "Sheet": "unreel.reviewers.contract",
    "ShownFrame": "unreel.reviewers.contract",
    "TimeSpan": "unreel.core.span",
    "Trace": "unreel.core.trace",
    "TraceVerdict": "unreel.core.verdict",
    "UnknownNameError": "unreel.core.errors",
    "Unmeasured": "unreel.core.estimate",
    "Unparsed": "unreel.core.verdict",
    "UnparsedReason": "unreel.core.verdict",
    "UnreadableSourceError": "unreel.core.errors",
    "UnreelError": "unreel.core.errors",
    "UnsafeTargetError": "unreel.core.errors",
    "Usage": "unreel.core.answer",
    "Verdict": "unreel.core.verdict",
    "VideoFacts": "unreel.core.facts",
    "Vote": "unreel.core.judgement",
    "compare": "unreel.verbs.comparing",
    "curate": "unreel.verbs.curating",
    "evaluate": "unreel.verbs.running",
    "open_benchmark": "unreel.verbs.opening",
    "open_media": "unreel.verbs.opening",
    "open_run": "unreel.verbs.running",
    "review": "unreel.verbs.reviewing",
    "review_async": "unreel.verbs.reviewing",
    "score": "unreel.verbs.scoring",
}

_FOLDERS = ("curate", "evaluate")
"""Verbs that bear the name of the folder which does the work."""


if not TYPE_CHECKING:  # a type checker knows the names, and no others

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            msg = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(msg)
        found = getattr(import_module(_LAZY[name]), name)
        if name in _FOLDERS:  # `unreel.evaluate(...)` is the verb, `unreel.evaluate.job` a module
            found.__dict__ = import_module(f"{__name__}.{name}").__dict__
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """This package: loading a folder does not put it in the place of the verb of its name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _FOLDERS or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
