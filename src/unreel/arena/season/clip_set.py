"""The clip set of a season: real clips, controls and generated clips as one benchmark.

Media are hard links if the file system supports them, otherwise copies. A table with files
outside its folder would be as cheap, but every reader of the set would have to allow it, and
a benchmark that moves would break the season.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from unreel.arena.season.folder import SET, SeasonEntrants, SeasonFolder
from unreel.arena.season.scenes import SeasonBenchmark, get_entry_scene
from unreel.benchmarks.cells import is_url
from unreel.benchmarks.entry import Entry
from unreel.benchmarks.loader import Benchmark, open_benchmark
from unreel.benchmarks.table_entries import convert_entry_to_record
from unreel.core.clip import (
    Clip,
    Generated,
    Origin,
    Real,
    get_first_creator,
    get_first_creator_setting,
)
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.input_files import parse_json_object
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_names import get_safe_suffix
from unreel.core.trace import Trace
from unreel.creators.contract import ClipClass
from unreel.engine.clip_facts import (
    CLIPS,
    FACTS,
    ClipProbeStage,
    StoredClipFacts,
    iter_clip_file_rows,
)
from unreel.engine.run import run_pending_questions as run_stages
from unreel.engine.storage_access import ClipAccessSettings
from unreel.engine.table import LanceTable

CONTROLS = "controls.json"
METADATA = "metadata.jsonl"
_TRACES = TypeAdapter(tuple[Trace, ...])


@dataclass(frozen=True, slots=True)
class _ClipToStore:
    """A clip that is to be stored in the season's clip set: its benchmark entry and its current file."""

    entry: Entry
    file: str
    """Current path or URL of the clip."""
    known: Mapping[str, str]
    """Id and properties of the clip; empty if it was not probed."""
    control: str = ""
    """Name of the control that made the clip; "" for other clips."""


def open_season_clip_facts_table(folder: SeasonFolder) -> LanceTable:
    """Return the table with the ids and properties of the files in the season's clip set."""
    return LanceTable(folder.place / "set.lance", CLIPS)


def open_season_clip_set(folder: SeasonFolder) -> Benchmark:
    """Open the clip set of the season as a benchmark."""
    return open_benchmark(folder.set, "video-folder")


def rebuild_season_clip_set(
    folder: SeasonFolder,
    benchmark: SeasonBenchmark,
    entrants: SeasonEntrants,
    access: ClipAccessSettings,
) -> frozenset[str]:
    """Rewrite the clip set from the benchmark and the generated clips, and survey its new files.

    Returns:
        The names of the clips for reviewers: all except the clips of removed creators.
    """
    played = [
        *_iter_benchmark_clips(folder, benchmark, entrants),
        *_iter_creator_clips(folder, entrants),
    ]
    controls = {clip.entry.name: clip.control for clip in played if clip.control}
    files = OutputDirectory(folder.set)
    known: dict[str, Mapping[str, str]] = {}
    with files.create_text(METADATA) as table:
        # The real clip of a scene comes before its controls: pairing takes the first real clip.
        for clip in sorted(played, key=lambda clip: (bool(clip.control), clip.entry.name)):
            location = clip.file
            if not is_url(location):
                # The name is the hash of the content, or of the location if the file was not read.
                stem = clip.known.get("clip") or digest("unread", clip.file)
                location = f"media/{stem[:2]}/{stem}{get_safe_suffix(clip.file)}"
                _link_or_copy_file(files, Path(clip.file), location)
            known[location] = clip.known
            line = json.dumps(
                convert_entry_to_record(clip.entry, file_name=location), ensure_ascii=False
            )
            table.write(line + "\n")
    folder.write_json(f"{SET}/{CONTROLS}", controls)
    benchmark_of_set = open_season_clip_set(folder)
    entries = [row for row in benchmark_of_set if isinstance(row, Entry)]
    locations = {benchmark_of_set.find(entry): entry.location for entry in entries}
    # Files with known properties are not opened again.
    rows = (
        row | dict(known.get(locations.get(row["location"], ""), {}))
        for row in iter_clip_file_rows(benchmark_of_set, entries, access, cleaned=True)
    )
    run_stages(rows, [ClipProbeStage(access)], table=open_season_clip_facts_table(folder))
    return read_current_clip_names(folder, entrants)


def read_current_clip_names(folder: SeasonFolder, entrants: SeasonEntrants) -> frozenset[str]:
    """Return the names of the clips that reviewers judge; an empty set if no clip set was written."""
    if not (folder.set / METADATA).is_file():
        return frozenset()
    gone = entrants.retired_creators
    controls = read_clip_controls(folder)
    entries = (row for row in open_season_clip_set(folder) if isinstance(row, Entry))
    return frozenset(
        entry.name
        for entry in entries
        if (controls.get(entry.name) or get_first_creator(entry.origin)) not in gone
    )


def read_clip_controls(folder: SeasonFolder) -> dict[str, str]:
    """Return the names of clips that a control made, with the control; other clips are omitted."""
    try:
        controls = parse_json_object(folder.place.read(f"{SET}/{CONTROLS}"))
    except (FileNotFoundError, InvalidValueError) as error:
        source = str(folder.set / CONTROLS)
        raise UnreadableSourceError(
            source, "no list of controls", "Run the season again: it is rewritten"
        ) from error
    return {str(name): str(control) for name, control in controls.items()}


def _iter_benchmark_clips(
    folder: SeasonFolder, benchmark: SeasonBenchmark, entrants: SeasonEntrants
) -> Iterator[_ClipToStore]:
    titles = entrants.shown(entrants.creators)
    origins: list[tuple[Entry, Origin]] = [(entry, Real()) for entry in benchmark.real()]
    for creator in entrants.creators:
        for entry in benchmark.held(creator.held) if creator.held else ():
            generated = Generated(titles[creator.name], get_first_creator_setting(entry.origin))
            origins.append((entry, generated))
    survey = StoredClipFacts(folder.benchmark_clips)
    clips = survey.find(benchmark.benchmark, [entry for entry, _ in origins])
    for (entry, origin), (_, clip) in zip(origins, clips, strict=True):
        row = replace(entry, origin=origin, group=get_entry_scene(entry), split="")
        if entry.cleaned is not None:
            path = cleaned = benchmark.benchmark.find_cleaned(entry) or ""
            if not is_url(path):
                cleaned = f"media/{digest('cleaned', path)[:32]}{get_safe_suffix(path)}"
                _link_or_copy_file(OutputDirectory(folder.set), Path(path), cleaned)
            row = replace(row, cleaned=cleaned)
        known = {}
        if isinstance(clip, Clip):
            known = {"clip": clip.id, "facts": FACTS.dump_json(clip.facts).decode()}
        yield _ClipToStore(row, benchmark.benchmark.find(entry), known)


def _iter_creator_clips(folder: SeasonFolder, entrants: SeasonEntrants) -> Iterator[_ClipToStore]:
    table, titles = folder.made, entrants.shown(entrants.creators)
    if not table.exists():
        return
    for row in table.rows(where="failure_reason IS NULL"):
        creator, scene = titles.get(row["name"]) or str(row["creator"]), row["scene"]
        control = row["side"] == ClipClass.CONTROL.value
        setting = row["setting"]
        traces: tuple[Trace, ...] = ()
        with suppress(ValidationError):
            traces = _TRACES.validate_json(row["traces"]) if row["traces"] else ()
        yield _ClipToStore(
            Entry(
                name=f"{creator}/{scene}" if control else f"{creator}/{setting}/{scene}",
                location=row["file"],
                origin=Real() if control else Generated(creator, setting),
                group=scene,
                traces=traces,
            ),
            str(folder.path / row["file"]),
            {"clip": row["sha256"], "facts": row["facts"]},
            creator if control else "",
        )


def _link_or_copy_file(directory: OutputDirectory, source: Path, name: str) -> None:
    if not source.is_file() or directory.size(name) == source.stat().st_size:
        return
    if not directory.hard_link(source.resolve(), name):
        directory.copy(source, name)
