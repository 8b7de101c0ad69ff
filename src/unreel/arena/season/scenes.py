"""Scenes that a season takes from its benchmark, the briefs for creators, and the clip set that reviewers judge.

Media of the clip set are hard links if the file system supports them, otherwise copies. A table with files
outside its folder would be as cheap, but every reader of the set would have to allow it, and
a benchmark that moves would break the season.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from unreel.arena.season.folder import SET, Season, SeasonEntrants, SeasonFolder
from unreel.benchmarks.cells import is_url
from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.loader import Benchmark, open_benchmark
from unreel.benchmarks.statistics import BenchmarkStats, sample_balanced_entries
from unreel.benchmarks.table_entries import convert_entry_to_record
from unreel.core.clip import (
    Clip,
    Generated,
    Origin,
    Real,
    get_first_creator,
    get_first_creator_setting,
)
from unreel.core.content_ids import compute_clip_id, digest
from unreel.core.errors import InvalidSettingError, InvalidValueError, UnreadableSourceError
from unreel.core.failure import Failure, FailureReason
from unreel.core.input_files import parse_json_object, read_limited_bytes
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_names import get_safe_suffix, read_clip_id, require_relative_path
from unreel.core.span import convert_to_microseconds
from unreel.core.trace import Trace
from unreel.creators.config import CreatorFactory
from unreel.creators.contract import ClipBrief, ClipClass, CreatorInput, Given
from unreel.creators.folder import ENDINGS
from unreel.curation.freeze.media import FIRST_FRAME_PLAN
from unreel.curation.freeze.step import CHECKSUMS
from unreel.engine.clip_facts import (
    CLIPS,
    FACTS,
    ClipProbeStage,
    StoredClipFacts,
    iter_clip_file_rows,
)
from unreel.engine.run import run_pending_questions as run_stages
from unreel.engine.stage import Row
from unreel.engine.storage_access import ClipAccessSettings
from unreel.engine.table import LanceTable
from unreel.media.picture import encode_png
from unreel.media.reader import MediaReader

_MAX_BYTES = 256 << 20
_N_FITTING_ENTRIES = 4
"""Number of training clips of baselines per scene, if only some scenes are used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonBenchmark:
    """The opened benchmark of a season: the entries and scenes that it uses, and training clips."""

    benchmark: Benchmark
    digest: str
    entries: tuple[Entry, ...]
    """Entries of the split; with a limit, a sample."""
    fitting_entries: tuple[Entry, ...]
    """Training clips of baselines: the complete frozen split; with a limit, a number per scene."""
    scenes: Mapping[str, Entry]
    """Real clip of each scene, sorted by name."""
    rejected: tuple[Rejected, ...]
    """First unusable rows; `n_rejected` counts all."""
    n_rejected: int

    def real(self) -> Iterator[Entry]:
        return (
            e
            for e in self.entries
            if isinstance(e.origin, Real) and get_entry_scene(e) in self.scenes
        )

    def held(self, creator: str) -> list[Entry]:
        generated = (e for e in self.entries if isinstance(e.origin, Generated))
        return [e for e in generated if get_first_creator(e.origin) == creator]

    def creators(self) -> list[str]:
        return sorted({e.origin.creator for e in self.entries if isinstance(e.origin, Generated)})


def assign_scene_file_names(scenes: Iterable[str]) -> dict[str, str]:
    """Choose each scene's name, `x` for `clips/x.mp4`; with folder or extension if names repeat."""
    all_scenes = list(scenes)
    names = {
        scene: _drop_video_extension(scene).rpartition("/")[2] or scene for scene in all_scenes
    }
    for longer in (_drop_video_extension, str):
        tally = Counter(names.values())
        names |= {scene: longer(scene) for scene in all_scenes if tally[names[scene]] > 1}
    return names


def _drop_video_extension(scene: str) -> str:
    stem, dot, ending = scene.rpartition(".")
    return stem if stem and f"{dot}{ending.lower()}" in ENDINGS else scene


def get_entry_scene(entry: Entry) -> str:
    """Return the scene of a clip: the group, or the name of a clip without group."""
    return entry.group or entry.name


def open_season_benchmark(season: Season, *, outside: bool = False) -> SeasonBenchmark:
    """Open the benchmark of `season` and select the scenes of the season."""
    recipe, path = season.recipe, season.benchmark
    mapping = recipe.mapping or None
    benchmark = open_benchmark(path, recipe.layout, mapping=mapping, outside=outside)
    reading = BenchmarkStats()
    usable = [e for e in reading.watch(benchmark) if recipe.split in {None, e.split}]
    if not usable or reading.identity is None:
        raise reading.nothing(str(path), recipe.split)
    fingerprint = reading.identity.fingerprint
    if (benchmark.root / CHECKSUMS).is_file():
        fingerprint = f"{fingerprint}+{_verify_checksums(benchmark.root)}"
    limit, seed = recipe.limit, recipe.seed
    first: dict[str, Entry] = {}
    for entry in sorted(usable, key=lambda e: e.name):
        if isinstance(entry.origin, Real):
            first.setdefault(get_entry_scene(entry), entry)
    chosen = sorted(first, key=lambda scene: digest("scene", str(seed), scene))[:limit]
    scenes = {scene: first[scene] for scene in sorted(chosen)}
    if not scenes:
        raise UnreadableSourceError(
            str(path), "has no real clip", "Name a benchmark with both sides, or another split"
        )
    entries, fitting_entries = usable, usable
    if limit is not None:
        # Clips of the sampled scenes, and for each creator `limit` clips of scenes without a real clip.
        counts: Counter[str] = Counter()
        entries = []
        for entry in sorted(usable, key=lambda e: digest("clip", str(seed), e.name)):
            scene, creator = get_entry_scene(entry), get_first_creator(entry.origin)
            counts[creator] += scene not in first
            if scene in scenes or (scene not in first and counts[creator] <= limit):
                entries.append(entry)
        # Training clips of baselines do not depend on the entrants.
        fitting_entries = [
            *sample_balanced_entries(usable, _N_FITTING_ENTRIES * limit, seed=seed)[0]
        ]
    return SeasonBenchmark(
        benchmark=benchmark,
        digest=fingerprint,
        entries=tuple(entries),
        fitting_entries=tuple(fitting_entries),
        scenes=scenes,
        rejected=tuple(reading.rejected),
        n_rejected=reading.n_rejected,
    )


def require_benchmark_digest(season: Season, benchmark: SeasonBenchmark) -> None:
    """Check that the opened benchmark is the one that the season's recipe names by its hash."""
    written, actual = season.recipe.digest, benchmark.digest
    if written == actual:
        return
    setting, problem = "digest", f"{season.recipe.benchmark} is another benchmark: {actual}"
    remedy = "Bring back the one that the season names, or name this one in a season of its own"
    if not written:
        problem = "the season does not name the hash of its benchmark"
        remedy = f'Write digest = "{actual}", or let `unreel arena plan --pin` write it'
    raise InvalidSettingError(setting, problem, remedy)


def _verify_checksums(root: Path) -> str:
    """Verify a frozen benchmark; return its checksum file's hash or raise `UnreadableSourceError`."""
    data = read_limited_bytes(root / CHECKSUMS, most=_MAX_BYTES)
    for line in data.decode(errors="replace").splitlines():
        sha, _, name = line.partition("  ")
        file = root / require_relative_path(name)
        if not file.is_file() or compute_clip_id(file) != read_clip_id(sha, str(root / CHECKSUMS)):
            raise UnreadableSourceError(
                str(file), "not the file that was frozen", "Get the benchmark again"
            )
    return hashlib.sha256(data).hexdigest()


WORDLESS = "The scene goes on as it began."
"""Prompt for a setting with an image and no text."""
_SEEDS = 2**31


def iter_clip_request_rows(
    factory: CreatorFactory, benchmark: SeasonBenchmark, *, seed: int
) -> Iterator[Row]:
    """Yield an engine row for each clip that a season requests from a creator: per scene and setting."""
    stems = assign_scene_file_names(benchmark.scenes)
    for scene, entry in benchmark.scenes.items():
        brief_seed = int(digest("brief", str(seed), str(factory.seed), scene)[:12], 16) % _SEEDS
        for setting in factory.settings:
            parts = (factory.name, scene, setting.value, str(brief_seed), benchmark.digest)
            yield {
                "key": digest("made", *parts),
                "creator": factory.title,
                "name": factory.name,
                "side": factory.side.value,
                "setting": setting.value,
                "scene": scene,
                "seed": brief_seed,
                "_text": entry.prompt,
                "_stem": stems[scene],
            }


def add_real_clip_columns(
    rows: Iterable[Row], benchmark: SeasonBenchmark, facts: StoredClipFacts
) -> Iterator[Row]:
    """Yield the clip requests `rows` with the location, size and length of their scene's real clip."""
    columns: dict[str, dict[str, Any]] = {}
    for entry, clip in facts.find(benchmark.benchmark, benchmark.scenes.values()):
        scene = get_entry_scene(entry)
        if isinstance(clip, Failure):
            columns[scene] = {"_problem": str(clip)}
        else:
            width, height = clip.size
            columns[scene] = {
                "_location": clip.location,
                "_width": width,
                "_height": height,
                "_duration_us": convert_to_microseconds(clip.facts.video.duration_s),
            }
    return (row | columns[row["scene"]] for row in rows)


def build_clip_brief(
    row: Row, file: Path | None, reader: MediaReader, given: Given
) -> ClipBrief | Failure:
    """Build the brief for an engine row of a clip, or a failure that names the scene's missing input."""
    if file is None:
        return Failure(FailureReason.NO_BRIEF, f"the real clip cannot be read: {row['_problem']}")
    setting = CreatorInput(row["setting"])
    text, picture = WORDLESS if setting is CreatorInput.IMAGE else row["_text"], None
    if given == "brief":
        if not text.strip():
            return Failure(FailureReason.NO_BRIEF, "the benchmark has no prompt for this scene")
        if setting is not CreatorInput.TEXT:
            frames = reader.frames(file, sampling=FIRST_FRAME_PLAN, encoding="rgb24")
            if isinstance(frames, Failure):
                detail = f"no first frame of its real clip: {frames}"
                return Failure(FailureReason.NO_BRIEF, detail)
            picture = encode_png(frames.frames[0].rgb())
    return ClipBrief(
        id=row["scene"],
        setting=setting,
        text=text,
        first_frame=picture,
        source=file if given == "source" else None,
        width=row["_width"],
        height=row["_height"],
        duration_us=row["_duration_us"],
        seed=row["seed"],
        file_stem=row.get("_stem", ""),
    )


CONTROLS = "controls.json"
METADATA = "metadata.jsonl"
_TRACES = TypeAdapter(tuple[Trace, ...])


@dataclass(frozen=True, slots=True)
class _ClipToStore:
    """A clip to store in the season's clip set: benchmark entry and current file."""

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
            source, "no list of controls", "Run the season again, which rewrites the file"
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
