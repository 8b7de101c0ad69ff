"""Detection of AI-generated video: whether a clip looks generated, where, when and why.

This package exports the domain types and the functions `review`, `reward`, `evaluate`, `open_run`, `score`,
`compare`, `curate`, `open_campaign`, `train`, `run_season`, `rank_season`, `open_benchmark` and `open_media`.
Each name is imported at its first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unreel.annotation.agreement import CampaignAgreement
    from unreel.annotation.campaign_state import CampaignProgress
    from unreel.annotation.consensus.outcome import CampaignConsensus
    from unreel.annotation.pairs import ClipRanking
    from unreel.annotation.publishing.publish import PublicationResult
    from unreel.annotation.quality import CampaignQuality
    from unreel.api.annotation import StoredCampaign, open_campaign
    from unreel.api.arena import rank_season, run_season
    from unreel.api.curate import CurationResult, curate
    from unreel.api.review import review, review_async
    from unreel.api.reward import reward
    from unreel.api.runs import Run, compare, evaluate, open_run
    from unreel.api.score import score
    from unreel.api.sources import open_benchmark, open_media
    from unreel.api.training import train
    from unreel.arena.boards.leaderboard_metrics import LeaderboardRow, SeasonLeaderboard
    from unreel.arena.boards.preference_ranking import PreferenceRates
    from unreel.arena.run.outcome import EntrantRunSummary, SeasonOutcome
    from unreel.benchmarks.entry import Entry, Rejected
    from unreel.benchmarks.loader import Benchmark
    from unreel.core.answer import Reply, Usage
    from unreel.core.box import Box
    from unreel.core.clip import (
        AudioFacts,
        Clip,
        ClipFacts,
        ClipId,
        Generated,
        Origin,
        Real,
        VideoFacts,
    )
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
    from unreel.evaluation.opinion import Opinion
    from unreel.evaluation.review import Review
    from unreel.media.reader import MediaReader
    from unreel.reviewers.contract import ClipInput, InputKind, Reviewer, ReviewRequest, ShownFrame
    from unreel.rewards.result import Reward
    from unreel.training.manifest import TrainingResult


__all__ = [
    "AudioFacts",
    "Benchmark",
    "Box",
    "BoxAt",
    "CampaignAgreement",
    "CampaignConsensus",
    "CampaignProgress",
    "CampaignQuality",
    "Category",
    "Clip",
    "ClipFacts",
    "ClipId",
    "ClipInput",
    "ClipRanking",
    "Comparison",
    "Comparisons",
    "Condition",
    "Coverage",
    "CurationResult",
    "Difference",
    "EntrantRunSummary",
    "Entry",
    "Estimate",
    "Failure",
    "FailureReason",
    "Generated",
    "InputKind",
    "Instrument",
    "InvalidSettingError",
    "InvalidValueError",
    "Label",
    "LeaderboardRow",
    "MachineError",
    "Measured",
    "MediaError",
    "MediaReader",
    "Metric",
    "MissingExtraError",
    "Opinion",
    "Origin",
    "Pair",
    "Position",
    "PreferenceRates",
    "PreferenceVerdict",
    "Progress",
    "PublicationResult",
    "Question",
    "Rating",
    "Real",
    "RealismVerdict",
    "RealityVerdict",
    "Rejected",
    "Reply",
    "Review",
    "ReviewRequest",
    "Reviewer",
    "Reward",
    "Run",
    "SandboxError",
    "Scorecard",
    "SeasonLeaderboard",
    "SeasonOutcome",
    "ShownFrame",
    "StoredCampaign",
    "TimeSpan",
    "Trace",
    "TraceVerdict",
    "TrainingResult",
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
    "open_campaign",
    "open_media",
    "open_run",
    "rank_season",
    "review",
    "review_async",
    "reward",
    "run_season",
    "score",
    "train",
]

_NAMES = {
    "annotation.agreement": "CampaignAgreement",
    "annotation.campaign_state": "CampaignProgress",
    "annotation.consensus.outcome": "CampaignConsensus",
    "annotation.pairs": "ClipRanking",
    "annotation.publishing.publish": "PublicationResult",
    "annotation.quality": "CampaignQuality",
    "api.annotation": "StoredCampaign open_campaign",
    "api.arena": "rank_season run_season",
    "api.curate": "CurationResult curate",
    "api.review": "review review_async",
    "api.reward": "reward",
    "api.runs": "Run compare evaluate open_run",
    "api.score": "score",
    "api.sources": "open_benchmark open_media",
    "api.training": "train",
    "arena.boards.preference_ranking": "PreferenceRates",
    "arena.boards.leaderboard_metrics": "LeaderboardRow SeasonLeaderboard",
    "arena.run.outcome": "EntrantRunSummary SeasonOutcome",
    "benchmarks.entry": "Entry Rejected",
    "benchmarks.loader": "Benchmark",
    "core.answer": "Reply Usage",
    "core.box": "Box",
    "core.clip": "AudioFacts Clip ClipFacts ClipId Generated Origin Real VideoFacts",
    "core.comparison": "Comparison Comparisons Difference",
    "core.errors": (
        "InvalidSettingError InvalidValueError MachineError MediaError MissingExtraError "
        "SandboxError UnknownNameError UnreadableSourceError UnreelError UnsafeTargetError"
    ),
    "core.estimate": "Coverage Estimate Measured Metric Scorecard Unmeasured",
    "core.failure": "Failure FailureReason",
    "core.judgement": "Label Pair Rating Vote",
    "core.question": "Condition Instrument Question",
    "core.span": "TimeSpan",
    "core.trace": "BoxAt Category Trace",
    "core.verdict": (
        "Position PreferenceVerdict RealismVerdict RealityVerdict TraceVerdict Unparsed "
        "UnparsedReason Verdict"
    ),
    "engine.progress": "Progress",
    "evaluation.opinion": "Opinion",
    "evaluation.review": "Review",
    "media.reader": "MediaReader",
    "reviewers.contract": "ClipInput InputKind ReviewRequest Reviewer ShownFrame",
    "rewards.result": "Reward",
    "training.manifest": "TrainingResult",
}
"""Public names of each module; the module paths are relative to `unreel`."""

_LAZY = {name: f"unreel.{module}" for module, names in _NAMES.items() for name in names.split()}

if not TYPE_CHECKING:  # type checkers use the imports above

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_LAZY[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
