"""Registry of built-in reviewers: the class or function that builds each, by name."""

from collections.abc import Callable
from typing import Any

from unreel.core.registry import LazyImport, NamedObjectRegistry

ENDPOINT = "endpoint"
RECORDED = "recorded"
FITTED = ("metadata", "motion")
"""Baselines that are fitted on the benchmark, without the creator of the scored clip."""
FLOORS = frozenset({"always-generated", "always-real", "coin", *FITTED})
"""Baselines that use little or nothing of the picture; every other reviewer should score higher."""

REVIEWERS: NamedObjectRegistry[Callable[..., Any]] = NamedObjectRegistry(
    "reviewer",
    {
        "always-generated": LazyImport(
            "unreel.reviewers.baselines.constant:build_always_generated_reviewer"
        ),
        "always-real": LazyImport("unreel.reviewers.baselines.constant:build_always_real_reviewer"),
        "coin": LazyImport("unreel.reviewers.baselines.constant:CoinReviewer"),
        ENDPOINT: LazyImport("unreel.reviewers.endpoint.reviewer:EndpointReviewer"),
        "metadata": LazyImport("unreel.reviewers.baselines.metadata:fit_metadata_baseline"),
        "motion": LazyImport("unreel.reviewers.baselines.motion:fit_motion_baseline"),
        RECORDED: LazyImport("unreel.reviewers.recorded:open_recorded_reviewer"),
    },
    group="unreel.reviewers",
)
