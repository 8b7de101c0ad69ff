"""Check of a user's benchmark before any question is sent to a model."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unreel.benchmarks.cells import is_url
from unreel.benchmarks.columns import KNOWN, find_nearest_column_name
from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.layout import LAYOUTS
from unreel.benchmarks.loader import Benchmark, find_matching_layouts, open_benchmark
from unreel.core.clip import Generated
from unreel.core.errors import InvalidValueError
from unreel.core.judgement import Label
from unreel.protocols.metric_definitions import FAKE_ACCURACY, REAL_ACCURACY
from unreel.protocols.protocol import PROTOCOLS, Protocol, Subject, get_protocol
from unreel.stats.paired_differences import FEWEST
from unreel.stats.power import N_DIFFERENCES, compute_detectable_accuracy_gap

ROWS_SHOWN = 3
MAX_NAMES = 1000
"""Maximum number of distinct names that are counted separately; an untrusted table may have a million."""
OTHERS = "(others)"
_CELL = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")
_UNKNOWN_US = 1
"""Placeholder for the duration of a clip, which is read from its file later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAndIgnoredColumns:
    """Columns of one table of a benchmark: those that are read as fields, and those that are ignored."""

    table: str
    read: Mapping[str, str]
    """Field that each column is read as."""
    ignored: Mapping[str, str]
    """Columns that are not read, with the known name that may be meant, or ""."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolTruthCount:
    """Number of a benchmark's clips or pairs with ground truth for one protocol, and missing data."""

    protocol: str
    subject: Subject
    n: int
    """Number of clips or pairs that the protocol can ask about."""
    lacks: str
    """Missing data and the remedy; "" if complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectionReasonCount:
    """Number of benchmark rows that cannot be used for the same reason, and the first of these rows."""

    n: int
    first: Rejected


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkCheckResult:
    """Result of the check of a benchmark: layout, columns, counts and unusable rows."""

    source: str
    layout: str
    could_be: tuple[str, ...]
    """Other layouts that fit."""
    tables: tuple[ReadAndIgnoredColumns, ...]
    n_clips: int
    n_unusable: int
    labels: Mapping[str, int]
    splits: Mapping[str, int]
    creators: Mapping[str, int]
    sources: Mapping[str, int]
    n_scenes: int
    """Number of groups of clips that show the same scene."""
    n_independent: int
    """Number of scenes, plus clips without a scene."""
    detectable: float | None
    """Smallest difference between two accuracies, in percentage points, that this many clips show
    in 8 of 10 comparisons with Holm's correction for `N_DIFFERENCES`, if exactly one reviewer is right
    about `DISCORDANT` of them; `None` for fewer than 6.
    """
    n_rated: int
    n_traces: int
    n_measured: int
    """Number of clips whose size and duration the benchmark declares."""
    n_behind_urls: int
    n_not_here: int
    """Number of local clips whose file is missing."""
    first_not_here: str
    unusable: tuple[RejectionReasonCount, ...]
    instruments: tuple[ProtocolTruthCount, ...]
    rows: tuple[Mapping[str, object], ...]
    """Preview rows of the first clips."""

    @property
    def is_sound(self) -> bool:
        """Return whether there are clips, every row can be used and no file is missing."""
        return bool(self.n_clips) and not (self.n_unusable or self.n_not_here)


def check_benchmark(
    path: Path,
    layout: str | None = None,
    *,
    mapping: Mapping[str, str] | None = None,
    outside: bool = False,
) -> BenchmarkCheckResult:
    """Read all rows of the benchmark at `path` once and return the result of the check; open no clip.

    `outside` lets a table name files outside its folder. Raise `UnreadableSourceError` if the
    benchmark does not fit the given layout, or fits no layout.
    """
    benchmark = open_benchmark(path, layout, mapping=mapping, outside=outside)
    counts = _BenchmarkRowCounts()
    for row in benchmark:
        counts.add(row, benchmark)
    n_scenes = len(counts.filmed | counts.twins.keys())
    n_independent = n_scenes + counts.n_ungrouped
    layouts = (other for other in find_matching_layouts(path, mapping) if other != benchmark.layout)
    return BenchmarkCheckResult(
        source=str(path),
        layout=benchmark.layout,
        could_be=tuple(layouts),
        tables=tuple(
            _classify_columns(*table)
            for table in LAYOUTS.load(benchmark.layout).list_columns(path, mapping)
        ),
        n_clips=counts.n_clips,
        n_unusable=sum(reason.n for reason in counts.reasons.values()),
        labels=counts.labels,
        splits=dict(counts.splits.most_common()),
        creators=dict(counts.creators.most_common()),
        sources=dict(counts.sources.most_common()),
        n_scenes=n_scenes,
        n_independent=n_independent,
        detectable=100 * compute_detectable_accuracy_gap(n_independent, alpha=0.05 / N_DIFFERENCES)
        if n_independent >= FEWEST
        else None,
        n_rated=counts.n_rated,
        n_traces=counts.n_traces,
        n_measured=counts.n_measured,
        n_behind_urls=counts.n_behind_urls,
        n_not_here=counts.n_not_here,
        first_not_here=counts.first_not_here,
        unusable=tuple(sorted(counts.reasons.values(), key=lambda reason: -reason.n)),
        instruments=tuple(counts.readiness(name) for name in PROTOCOLS.entries),
        rows=tuple(counts.rows),
    )


@dataclass(slots=True)
class _BenchmarkRowCounts:
    """Counts of a benchmark's rows, updated row by row."""

    n_clips: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    splits: Counter[str] = field(default_factory=Counter)
    creators: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    filmed: set[str] = field(default_factory=set)
    """Groups with a real clip."""
    twins: Counter[str] = field(default_factory=Counter)
    """Number of generated clips in each group."""
    n_ungrouped: int = 0
    n_rated: int = 0
    n_traces: int = 0
    n_measured: int = 0
    n_behind_urls: int = 0
    n_not_here: int = 0
    first_not_here: str = ""
    reasons: dict[str, RejectionReasonCount] = field(default_factory=dict)
    rows: list[Mapping[str, object]] = field(default_factory=list)
    has_truth: Counter[str] = field(default_factory=Counter)
    lacks: dict[str, str] = field(default_factory=dict)
    about_clips: Mapping[str, Protocol[Any, Any]] = field(
        default_factory=lambda: {
            name: protocol
            for name in PROTOCOLS.entries
            for protocol in [get_protocol(name)]
            if protocol.subject == "clip"
        }
    )

    def add(self, row: Entry | Rejected, benchmark: Benchmark) -> None:
        if isinstance(row, Rejected):
            # Rows whose reasons differ only in a cell's value are counted together.
            kind = _CELL.sub("", row.why)
            known = self.reasons.get(kind) or RejectionReasonCount(n=0, first=row)
            self.reasons[kind] = RejectionReasonCount(n=known.n + 1, first=known.first)
            return
        self.n_clips += 1
        self.labels[row.label.value] += 1
        _add_name_count(self.splits, row.split)
        _add_name_count(self.sources, row.source)
        if isinstance(row.origin, Generated):
            _add_name_count(self.creators, row.origin.creator)
        if row.group and row.label is Label.REAL:
            self.filmed.add(row.group)
        elif row.group:
            self.twins[row.group] += 1
        self.n_ungrouped += not row.group
        self.n_rated += row.rating is not None
        self.n_traces += len(row.traces)
        facts = row.facts
        self.n_measured += None not in {facts.width, facts.height, facts.duration_us}
        if is_url(row.location):
            self.n_behind_urls += 1
        elif not Path(benchmark.find(row)).is_file():
            self.n_not_here += 1
            self.first_not_here = self.first_not_here or benchmark.find(row)
        for name, protocol in self.about_clips.items():
            try:
                protocol.truths.of([row], duration_us=row.facts.duration_us or _UNKNOWN_US)
            except InvalidValueError as error:
                self.lacks.setdefault(name, str(error))
            else:
                self.has_truth[name] += 1
        if len(self.rows) < ROWS_SHOWN:
            generated = row.origin if isinstance(row.origin, Generated) else None
            self.rows.append(
                {
                    "name": row.name,
                    "location": row.location,
                    "label": row.label.value,
                    "creator": generated.creator if generated else "",
                    "split": row.split,
                    "group": row.group,
                    "score": row.rating.score if row.rating else "",
                    "traces": len(row.traces),
                }
            )

    def readiness(self, name: str) -> ProtocolTruthCount:
        protocol = get_protocol(name)
        if protocol.subject == "pair":
            n = sum(n for group, n in self.twins.items() if group in self.filmed)
            lacks = ""
            if not (self.filmed or self.twins):
                lacks = "no clip names its group. Add a group column: the scene that clips share"
            elif not n:
                lacks = (
                    "no group has a real clip and a generated one. Name the scene that they share"
                )
            return ProtocolTruthCount(
                protocol=protocol.instrument.protocol, subject="pair", n=n, lacks=lacks
            )
        n = self.has_truth[name]
        lacks = self.lacks.get(name, "")
        if not lacks and protocol.needs_box_space and not self.n_traces:
            lacks = "no trace is marked, so labels alone are scored. Add a traces column"
        accuracies = (REAL_ACCURACY.metric, FAKE_ACCURACY.metric)
        compares_labels = all(name in protocol.figures for name in accuracies)
        if not lacks and n and compares_labels and len(self.labels) < len(Label):
            (only,) = self.labels
            lacks = f"all clips are {only}, so that there is nothing to distinguish. Add the other"
        return ProtocolTruthCount(protocol=name, subject="clip", n=n, lacks=lacks)


def _add_name_count(names: Counter[str], name: str) -> None:
    if name:
        names[name if name in names or len(names) < MAX_NAMES else OTHERS] += 1


def _classify_columns(
    table: Path, columns: Iterable[str], known: Mapping[str, str]
) -> ReadAndIgnoredColumns:
    read = {column: known[column] for column in columns if column in known}
    used = set(read.values())
    ignored = {}
    for column in columns:
        if column not in read:
            nearest = find_nearest_column_name(column)
            meant = next((field for field, names in KNOWN.items() if nearest in names), None)
            ignored[column] = nearest if nearest != column and meant not in used else ""
    return ReadAndIgnoredColumns(table=table.name, read=read, ignored=ignored)
