"""The protocol `locate`: every generated segment of a clip, with regions, category and reason.

Where to look:
    `parser.py`: from an answer's text to segments, as JSON or in the tags of ViF-CoT.
    `segment_comparison.py`: overlap of answered segments with annotated ones, and matching rules.
    `scorer.py`: the scorecard.
"""

from unreel.core.registry import LazyImport
from unreel.core.verdict import LocateVerdict
from unreel.protocols.locate.ground_truth import LocateTruth, build_locate_truths
from unreel.protocols.locate.metrics import INSTRUMENT, METRICS
from unreel.protocols.locate.prompts import PROMPTS
from unreel.protocols.locate.verdict_texts import WORDING
from unreel.protocols.protocol import Protocol, ProtocolGroundTruth

LOCATE: Protocol[LocateTruth, LocateVerdict] = Protocol(
    instrument=INSTRUMENT,
    title="Every generated segment",
    prompts=PROMPTS,
    parse=LazyImport("unreel.protocols.locate.parser:parse_locate_answer"),
    score=LazyImport("unreel.protocols.locate.scorer:compute_locate_scorecard"),
    truths=ProtocolGroundTruth(kind=LocateTruth, of=build_locate_truths),
    wording=WORDING,
    figures=METRICS,
    tells_sides=True,
    needs_box_space=True,
    shows_times=True,
    sampling="fps-2",
)
