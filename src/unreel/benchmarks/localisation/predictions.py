"""Predictions of segments in the formats of others, as answers of `locate`.

| file | content | confidence |
|---|---|---|
| JSON object | `{"file": [[score, start, end], ...]}`, as for LAV-DF and AV-Deepfake1M, in seconds | the score |
| JSON list | conversations as in ViF-CoT: the last answer, in tags | none |
| text | lines `vid duration s=e+s=e`, as in ActivityForensics | none |
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from unreel.benchmarks import cells
from unreel.benchmarks.entry import Rejected
from unreel.benchmarks.localisation.activity_forensics import read_lines
from unreel.benchmarks.localisation.formats import SUFFIXES
from unreel.benchmarks.localisation.json_items import read_json_items
from unreel.benchmarks.localisation.spans import parse_segment, require_few
from unreel.benchmarks.localisation.vif_cot import parse_conversation
from unreel.core.errors import InvalidValueError
from unreel.core.trace import Trace
from unreel.core.verdict import LocatedSegment
from unreel.protocols.locate.text import UNIT, write_segments

_TRIPLE: Final = 3


def is_prediction_file(path: Path) -> bool:
    """Return whether a file of answers is read as predictions of segments."""
    return path.suffix.lower() in SUFFIXES


def find_prediction_space(path: Path) -> str | None:
    """Return the box space of a file of predictions that hold no boxes; `None` for other files."""
    if not is_prediction_file(path):
        return None
    is_text = path.suffix.lower() == ".txt"
    return UNIT.name if is_text or any(key for key, _ in islice(read_json_items(path), 1)) else None


def read_predictions(path: Path) -> Iterator[tuple[str, str] | Rejected]:
    """Yield the name of each clip with its answer as text, in order.

    Raises:
        UnreadableSourceError: The file cannot be read, or is none of these formats.
    """
    if path.suffix.lower() == ".txt":
        for line in read_lines(path):
            if isinstance(line, Rejected):
                yield line
            else:
                spans = (LocatedSegment(Trace(span=span)) for span in line.spans)
                yield line.name, write_segments(spans)
        return
    for number, (key, value) in enumerate(read_json_items(path), start=1):
        try:
            if key:
                segments = map(_parse_triple, _require_list(value))
                yield cells.parse_text_cell(key, "file"), write_segments(segments)
            else:
                yield parse_conversation(value)
        except InvalidValueError as error:
            yield Rejected(cells.format_untrusted_name(key) if key else f"row {number}", str(error))


def _require_list(value: object) -> list[Any]:
    if not isinstance(value, list):
        cells.raise_invalid_cell("the predictions", value, "Write a list of [score, start, end]")
    require_few(value)
    return value


def _parse_triple(value: object) -> LocatedSegment:
    if not isinstance(value, list) or len(value) != _TRIPLE:
        cells.raise_invalid_cell("a prediction", value, "Write [score, start, end]")
    score, start, end = value
    confidence = float(cells.parse_exact_number(score, "score"))
    if not 0 <= confidence <= 1:
        cells.raise_invalid_cell("score", score, "Write a confidence from 0 to 1")
    return LocatedSegment(Trace(span=parse_segment(start, end)), confidence)
