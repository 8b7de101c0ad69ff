"""`locate`: every generated segment of a clip, with regions, category, confidence and reason.

Where to look:
    `parser.py`: from an answer's text to segments.
    `json_parser.py`: a JSON list of segments.
    `tagged_parser.py`: the tags of ViF-CoT.
    `overlap.py`: overlap of segments and of tubes.
    `conventions.py`: the matching rules of `activitynet` and `avdeepfake1m`.
    `average_precision.py`: average precision as a function of weights.
    `clip_columns.py`: columns of compared segments.
    `scorer.py`: the scorecard.
"""

from typing import Final

from unreel.core.registry import LazyImport
from unreel.core.verdict import LocateVerdict
from unreel.protocols.locate.figures import FIGURES, INSTRUMENT
from unreel.protocols.locate.prompts import PROMPTS
from unreel.protocols.locate.text import WORDING
from unreel.protocols.locate.truth import LocateTruth, locate_truths
from unreel.protocols.protocol import Protocol, ProtocolGroundTruth

LOCATE: Final[Protocol[LocateTruth, LocateVerdict]] = Protocol(
    instrument=INSTRUMENT,
    title="Every generated segment",
    prompts=PROMPTS,
    parse=LazyImport("unreel.protocols.locate.parser:parse"),
    score=LazyImport("unreel.protocols.locate.scorer:score"),
    truths=ProtocolGroundTruth(kind=LocateTruth, of=locate_truths),
    wording=WORDING,
    figures=FIGURES,
    tells_sides=True,
    needs_box_space=True,
    shows_times=True,
    sampling="fps-2",
)
