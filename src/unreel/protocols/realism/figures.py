"""What `realism` measures: how far scores and reasons agree with people's."""

from typing import Final

from unreel.core.question import Instrument
from unreel.protocols.figures import Figure, Figures

INSTRUMENT: Final = Instrument("realism", 2)
_CORRELATION: Final = (-1.0, 1.0)
_PLACES: Final = 3
FIGURES: Final = Figures(
    declared=(
        Figure(
            metric="plcc",
            title="PLCC",
            meaning="linear correlation with people's scores",
            group="score",
            unit="",
            range=_CORRELATION,
            places=_PLACES,
        ),
        Figure(
            metric="srocc",
            title="SROCC",
            meaning="rank correlation with people's scores",
            group="score",
            unit="",
            range=_CORRELATION,
            places=_PLACES,
        ),
        Figure(
            metric="pcr",
            title="PCR",
            meaning="pairs of clips put in the same order as by people",
            group="score",
            unit="",
            range=(0.0, 1.0),
            places=_PLACES,
        ),
        Figure(
            metric="sts",
            title="STS",
            meaning="similarity of the reasons to people's",
            group="reasons",
            unit="",
            range=_CORRELATION,
            places=_PLACES,
        ),
    ),
    ranking="srocc",
    leading=("srocc", "plcc", "pcr", "sts"),
    exported=("plcc", "srocc", "pcr"),
)
