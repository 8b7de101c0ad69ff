"""Every reviewer by name. What stands behind a name is a class or a function that makes one."""

from typing import Final

from unreel.core.registry import Lazy, Registry

REVIEWERS: Final = Registry(
    "reviewer",
    {
        "always-generated": Lazy("unreel.reviewers.floors.constant:always_generated"),
        "always-real": Lazy("unreel.reviewers.floors.constant:always_real"),
        "coin": Lazy("unreel.reviewers.floors.constant:CoinReviewer"),
        "endpoint": Lazy("unreel.reviewers.endpoint.reviewer:EndpointReviewer"),
        "metadata": Lazy("unreel.reviewers.floors.metadata:fit_metadata"),
        "motion": Lazy("unreel.reviewers.floors.motion:fit_motion"),
        "recorded": Lazy("unreel.reviewers.recorded:read_recorded"),
    },
)
