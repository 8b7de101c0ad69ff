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
LOCAL_KIND, SERVER_KIND, NAMED_KIND = "local", "server", "named"
REVIEWER_KINDS: NamedObjectRegistry[Callable[..., Any]] = NamedObjectRegistry(
    "kind of reviewer",
    {
        "command": LazyImport("unreel.reviewers.kinds:open_external_reviewer"),
        "http": LazyImport("unreel.reviewers.kinds:open_external_reviewer"),
        LOCAL_KIND: LazyImport("unreel.reviewers.kinds:open_local_reviewer"),
        NAMED_KIND: LazyImport("unreel.reviewers.kinds:open_named_reviewer"),
        "python": LazyImport("unreel.reviewers.kinds:refuse_program_object"),
        RECORDED: LazyImport("unreel.reviewers.kinds:open_recorded_answers"),
        SERVER_KIND: LazyImport("unreel.reviewers.kinds:open_server_reviewer"),
    },
    group="unreel.reviewer_kinds",
)
"""Functions that return the factory of a reviewer for its `[reviewer]` section, by the kind of its model."""
