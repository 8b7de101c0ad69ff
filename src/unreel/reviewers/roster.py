"""Every reviewer by name. What stands behind a name is a class or a function that makes one."""

from typing import Final

from unreel.core.registry import Lazy, Registry

REVIEWERS: Final = Registry(
    "reviewer",
    {
        "always-generated": Lazy("unreel.reviewers.floors:always_generated"),
        "always-real": Lazy("unreel.reviewers.floors:always_real"),
        "coin": Lazy("unreel.reviewers.floors:CoinReviewer"),
        "endpoint": Lazy("unreel.reviewers.endpoint:EndpointReviewer"),
        "metadata": Lazy("unreel.reviewers.metadata:fit_metadata"),
        "motion": Lazy("unreel.reviewers.motion:fit_motion"),
        "recorded": Lazy("unreel.reviewers.recorded:read_recorded"),
    },
)
