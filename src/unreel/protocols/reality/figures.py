"""What `reality` measures: accuracies over real clips and each creator's, and who is caught."""

from dataclasses import replace
from typing import Final

from unreel.core.question import Instrument
from unreel.protocols.figures import ANSWERED_REAL, FAKE_ACCURACY, REAL_ACCURACY, Figure, Figures

INSTRUMENT: Final = Instrument("reality", 2)
FIGURES: Final = Figures(
    declared=(
        Figure(
            metric="balanced",
            title="Balanced accuracy",
            meaning="mean of both sides' accuracy, then of creators",
            group="classification",
            alike="creators",
        ),
        Figure(
            metric="pooled",
            title="Pooled accuracy",
            meaning="right among valid answers, real and generated in one pool",
            group="classification",
        ),
        FAKE_ACCURACY,
        REAL_ACCURACY,
        ANSWERED_REAL,
        replace(FAKE_ACCURACY, metric="caught"),
    ),
    ranking="balanced",
    leading=("balanced", "pooled", "fake-accuracy", "real-accuracy"),
    exported=("pooled", "balanced", "real-accuracy", "fake-accuracy", "answered-real"),
    sides=("real-accuracy", "fake-accuracy", "answered-real"),
    per_creator="caught",
)
