"""Scenes that a season takes from its benchmark, and the briefs for creators built from them."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unreel.arena.season.recipe import Season
from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.loader import Benchmark, open_benchmark
from unreel.benchmarks.statistics import BenchmarkStats, sample_balanced_entries
from unreel.core.clip import Generated, Real, get_first_creator
from unreel.core.content_ids import compute_clip_id, digest
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.failure import Failure, FailureReason
from unreel.core.input_files import read_limited_bytes
from unreel.core.safe_names import read_clip_id, require_relative_path
from unreel.core.span import convert_to_microseconds
from unreel.creators.config import CreatorFactory
from unreel.creators.contract import ClipBrief, CreatorInput, Given
from unreel.creators.folder import ENDINGS
from unreel.curation.freeze.media import FIRST_FRAME_PLAN
from unreel.curation.freeze.step import CHECKSUMS
from unreel.engine.clip_facts import StoredClipFacts
from unreel.engine.stage import Row
from unreel.media.picture import encode_png
from unreel.media.reader import MediaReader

_MOST_BYTES = 256 << 20
_LESSONS = 4
"""Number of training clips of baselines per scene, if only some scenes are used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonBenchmark:
    """The opened benchmark of a season: the entries and scenes that it uses, and training clips."""

    benchmark: Benchmark
    digest: str
    entries: tuple[Entry, ...]
    """Entries of the split; with a limit, a sample."""
    lessons: tuple[Entry, ...]
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
    """Return the scene of a clip: its group, or the clip itself if it has none."""
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
    entries, lessons = usable, usable
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
        lessons = [*sample_balanced_entries(usable, _LESSONS * limit, seed=seed).entries]
    return SeasonBenchmark(
        benchmark=benchmark,
        digest=fingerprint,
        entries=tuple(entries),
        lessons=tuple(lessons),
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
    data = read_limited_bytes(root / CHECKSUMS, most=_MOST_BYTES)
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
        return Failure(FailureReason.NO_BRIEF, f"its real clip cannot be read: {row['_problem']}")
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
