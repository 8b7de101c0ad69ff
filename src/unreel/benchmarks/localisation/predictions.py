"""Reader of predicted segments in the formats of other projects, as answers to `locate`.

| file | content | confidence |
|---|---|---|
| JSON object | `{"file": [[score, start, end], ...]}`, as for LAV-DF and AV-Deepfake1M, in seconds | the score |
| JSON list | conversations as in ViF-CoT: the last answer, in tags | none |
| text | lines `vid duration s=e+s=e`, as in ActivityForensics | none |
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from unreel.benchmarks import cells
from unreel.benchmarks.entry import Rejected
from unreel.benchmarks.localisation.json_stream import stream_json_items
from unreel.benchmarks.localisation.segment_files import (
    parse_segment_seconds,
    parse_vif_cot_conversation,
    read_activity_forensics_lines,
    require_few_segments,
)
from unreel.core.errors import InvalidValueError
from unreel.core.trace import Trace
from unreel.core.verdict import LocatedSegment
from unreel.protocols.locate.verdict_texts import UNIT, format_segments_json

_TRIPLE = 3


def is_segment_prediction_file(path: Path) -> bool:
    """Return whether an answers file is read as predicted segments, by its suffix."""
    return path.suffix.lower() in SUFFIXES


def find_prediction_box_space(path: Path) -> str | None:
    """Return the box space of a prediction file whose format has no boxes; `None` for other files."""
    if not is_segment_prediction_file(path):
        return None
    is_text = path.suffix.lower() == ".txt"
    has_keys = is_text or any(key for key, _ in islice(stream_json_items(path), 1))
    return UNIT.name if has_keys else None


def read_segment_predictions(path: Path) -> Iterator[tuple[str, str] | Rejected]:
    """Yield the name of each clip with its predicted segments as the text of an answer, in order.

    Raise `UnreadableSourceError` if the file cannot be read, or has none of the three formats.
    """
    if path.suffix.lower() == ".txt":
        for line in read_activity_forensics_lines(path):
            if isinstance(line, Rejected):
                yield line
            else:
                name, _, spans = line
                segments = (LocatedSegment(Trace(span=span)) for span in spans)
                yield name, format_segments_json(segments)
        return
    for number, (key, value) in enumerate(stream_json_items(path), start=1):
        try:
            if key:
                if not isinstance(value, list):
                    cells.raise_invalid_cell(
                        "the predictions", value, "Write a list of [score, start, end]"
                    )
                require_few_segments(value)
                answer = format_segments_json(map(_parse_scored_segment, value))
                yield cells.parse_text_cell(key, "file"), answer
            else:
                yield parse_vif_cot_conversation(value)
        except InvalidValueError as error:
            yield Rejected(cells.format_untrusted_name(key) if key else f"row {number}", str(error))


def _parse_scored_segment(value: object) -> LocatedSegment:
    if not isinstance(value, list) or len(value) != _TRIPLE:
        cells.raise_invalid_cell("a prediction", value, "Write [score, start, end]")
    score, start, end = value
    confidence = float(cells.parse_exact_number(score, "score"))
    if not 0 <= confidence <= 1:
        cells.raise_invalid_cell("score", score, "Write a confidence from 0 to 1")
    return LocatedSegment(Trace(span=parse_segment_seconds(start, end)), confidence)


SUFFIXES = (".json", ".txt")
