"""Entry of a benchmark: one clip with its ground truth; or a rejected row. Names of the layouts."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from unreel.core.clip import Generated, Origin
from unreel.core.judgement import Label, Rating, Vote
from unreel.core.trace import Trace

REASONS_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredFacts:
    """Properties of the file as declared by the source; None if not declared. The file itself may differ."""

    width: int | None = None
    height: int | None = None
    rate: Fraction | None = None
    """Frames per second."""
    n_frames: int | None = None
    duration_us: int | None = None


NOTHING_DECLARED = DeclaredFacts()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One clip of a benchmark with its ground truth and metadata. Empty text means: not given."""

    name: str
    """Name that is unique within the benchmark, and that answers refer to."""
    location: str
    """Path below the benchmark's folder with `/` between its parts, or a URL."""
    origin: Origin
    cleaned: str | None = None
    """Location of the copy without its watermark, in the format of `location`."""
    split: str = ""
    group: str = ""
    """Name of the scene; clips with the same group show the same scene."""
    prompt: str = ""
    difficulty: str = ""
    traces: tuple[Trace, ...] = ()
    """Traces, one per annotation row, in the order of the source."""
    rating: Rating | None = None
    """Agreed realism score."""
    ratings: tuple[Rating, ...] = ()
    """Scores of the single annotators, from which `rating` was agreed, if the source has them."""
    votes: tuple[Vote, ...] = ()
    facts: DeclaredFacts = NOTHING_DECLARED
    licence: str = ""
    source: str = ""

    @property
    def label(self) -> Label:
        """Return the label of the clip: generated or real."""
        return Label.GENERATED if isinstance(self.origin, Generated) else Label.REAL

    @property
    def n_units(self) -> int:
        """Return the number of rows that `trace` scores: one per trace, and one without traces."""
        return max(1, len(self.traces))


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row or file that cannot be used, with the reason; it is shown and counted, never dropped."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


Row = Entry | Rejected


def collect_entries(rows: Iterable[Row], rejected: list[Rejected]) -> list[Entry]:
    """Return the entries of `rows`, and append the other rows to `rejected`."""
    entries: list[Entry] = []
    for row in rows:
        if isinstance(row, Rejected):
            rejected.append(row)
        else:
            entries.append(row)
    return entries


class BenchmarkLayout(StrEnum):
    """Layout of a benchmark on disk."""

    DEEPTRACE = "deeptrace"
    """`all_data.json` and its videos: `unreel.benchmarks.deeptrace`."""
    REALITY = "reality"
    """`clips.csv`, `real/` and a folder for each creator: `unreel.benchmarks.video_reality_test`."""
    REALISM = "realism"
    """A table with scores: `unreel.benchmarks.loader`."""
    FOLDERS = "folders"
    """`real/` and `generated/<creator>/`: `unreel.benchmarks.folder_layout`."""
    LIST = "list"
    """A table with labels: `unreel.benchmarks.table_entries`."""
    LAV_DF = "lav-df"
    """A JSON list of clips with fake segments: `unreel.benchmarks.localisation.segment_files`."""
    ACTIVITY_FORENSICS = "activity-forensics"
    """Text lines with fake segments: `unreel.benchmarks.localisation.segment_files`."""
    VIF_COT = "vif-cot"
    """Conversations with tagged segments: `unreel.benchmarks.localisation.segment_files`."""
    VIDEO_FOLDER = "video-folder"
    """`metadata.jsonl`, `.csv` or `.parquet` and its media: `unreel.benchmarks.video_folder`."""
