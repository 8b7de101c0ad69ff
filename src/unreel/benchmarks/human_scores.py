"""Human scores on a benchmark in the metrics of its protocols, stored in the benchmark's folder."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from unreel.benchmarks.folder_layout import find_file_inside_folder
from unreel.core.errors import UnreadableSourceError
from unreel.core.estimate import Estimate, Measured, Scorecard, Unmeasured
from unreel.core.input_files import read_limited_bytes
from unreel.core.output_files import OutputDirectory

PEOPLE = "people.json"
_MAX_BYTES = 16 << 20
_REMEDY = "Publish the campaign again, or remove the file"

Against = Literal["origin", "known", "others"]
"""Kind of ground truth: origin of clips, known answers, or the consensus of the others."""

AGAINST: Mapping[Against, str] = {
    "origin": "the origin of the clips",
    "known": "answers known beforehand",
    "others": "the consensus of the others",
}
"""Descriptions of the kinds of ground truth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorScoreRow:
    """Scores of one annotator, or of the majority, for one protocol."""

    name: str
    kind: Literal["annotator", "majority"]
    protocol: str
    version: int
    against: Against
    n_judged: int
    """Number of clips or pairs that the scores are computed from."""
    figures: Mapping[str, Estimate | Unmeasured]

    def __getitem__(self, metric: str) -> Measured:
        """Return the value of `metric`; `Unmeasured` if people were not measured by that metric."""
        return self.figures.get(metric, Unmeasured("no score for annotators"))


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanScores:
    """Scores of all annotators of a campaign on one benchmark."""

    campaign: str
    fingerprint: str
    """Fingerprint of the benchmark; "" if unknown."""
    rows: tuple[AnnotatorScoreRow, ...]


_FILE = TypeAdapter(HumanScores)


def build_human_score_row(
    name: str, kind: Literal["annotator", "majority"], scorecard: Scorecard, *, against: Against
) -> AnnotatorScoreRow:
    """Return the scores of a person or the majority from `scorecard`, without metrics of benchmark parts."""
    return AnnotatorScoreRow(
        name=name,
        kind=kind,
        protocol=scorecard.instrument.protocol,
        version=scorecard.instrument.version,
        against=against,
        n_judged=scorecard.n_answered,
        figures={
            metric.name: metric.value for metric in scorecard.metrics if ":" not in metric.name
        },
    )


def write_human_scores(directory: OutputDirectory, human_scores: HumanScores) -> None:
    """Write the human scores to `human_scores.json` in the benchmark's folder."""
    directory.write(PEOPLE, _FILE.dump_json(human_scores, indent=1) + b"\n")


def read_human_scores(root: Path) -> HumanScores | None:
    """Return the human scores at `root`, `None` without a file; raise `UnreadableSourceError` if bad."""
    path = find_file_inside_folder(root if root.is_dir() else root.parent, PEOPLE)
    if path is None:
        return None
    try:
        return _FILE.validate_json(read_limited_bytes(path, most=_MAX_BYTES, remedy=_REMEDY))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]["msg"]
        raise UnreadableSourceError(str(path), f"no human scores: {first}", _REMEDY) from None
