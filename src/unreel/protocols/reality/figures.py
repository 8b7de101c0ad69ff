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
            formula="mean over creators X of 50 * (right on real clips / real clips + right on X's / X's clips)",
            alike="creators",
        ),
        Figure(
            metric="pooled",
            title="Mean accuracy per creator",
            meaning="right among the real clips and one creator's, then the mean over creators",
            group="classification",
            formula="mean over creators X of 100 * right / (real clips + X's clips)",
        ),
        FAKE_ACCURACY,
        REAL_ACCURACY,
        ANSWERED_REAL,
        replace(
            FAKE_ACCURACY,
            metric="caught",
            meaning="clips of one creator that were called generated",
            formula="100 * its clips called generated / its clips",
        ),
    ),
    ranking="balanced",
    leading=("balanced", "pooled", "fake-accuracy", "real-accuracy"),
    exported=("pooled", "balanced", "real-accuracy", "fake-accuracy", "answered-real"),
    sides=("real-accuracy", "fake-accuracy", "answered-real"),
    per_creator="caught",
    variants=(
        (": X", "of creator X alone; for a mean over creators, of X against all real clips"),
        (": X/SETTING", "the same for the clips that X made in one setting"),
        (
            "-all-clips",
            "over every clip asked about: one that failed or cannot be read is not right",
        ),
    ),
)
