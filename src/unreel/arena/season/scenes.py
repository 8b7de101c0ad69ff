"""Scenes that a season takes from its benchmark, and the briefs for creators built from them."""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unreel.arena.season.recipe import Season
from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.loader import Benchmark, open_benchmark
from unreel.benchmarks.statistics import BenchmarkStats, sample_balanced_entries
from unreel.core.clip import Clip, Generated, Real, get_first_creator
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
    """Entries of the split; with a limit, a sample as in `_iter_sampled_entries`."""
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
    scenes = _choose_scene_real_clips(usable, recipe.limit, seed=recipe.seed)
    if not scenes:
        raise UnreadableSourceError(
            str(path), "has no real clip", "Name a benchmark with both sides, or another split"
        )
    return SeasonBenchmark(
        benchmark=benchmark,
        digest=fingerprint,
        entries=tuple(_iter_sampled_entries(usable, scenes, recipe.limit, seed=recipe.seed)),
        lessons=tuple(_select_training_entries(usable, recipe.limit, seed=recipe.seed)),
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


def _choose_scene_real_clips(
    entries: Collection[Entry], limit: int | None, *, seed: int
) -> dict[str, Entry]:
    first: dict[str, Entry] = {}
    for entry in sorted(entries, key=lambda e: e.name):
        if isinstance(entry.origin, Real):
            first.setdefault(get_entry_scene(entry), entry)
    chosen = sorted(first, key=lambda scene: digest("scene", str(seed), scene))[:limit]
    return {scene: first[scene] for scene in sorted(chosen)}


def _iter_sampled_entries(
    entries: Sequence[Entry], scenes: Collection[str], limit: int | None, *, seed: int
) -> Iterator[Entry]:
    """Yield the entries of the season: all without a limit, else a sample.

    With a limit these are the clips of the sampled scenes, and for each creator at most `limit`
    clips whose scene has no real clip.
    """
    real = {get_entry_scene(e) for e in entries if isinstance(e.origin, Real)}
    counts: Counter[str] = Counter()
    ordered = sorted(entries, key=lambda e: digest("clip", str(seed), e.name))
    for entry in entries if limit is None else ordered:
        alone = get_entry_scene(entry) not in real
        if limit is not None and alone:
            counts[get_first_creator(entry.origin)] += 1
        if (
            limit is None
            or get_entry_scene(entry) in scenes
            or (alone and counts[get_first_creator(entry.origin)] <= limit)
        ):
            yield entry


def _select_training_entries(
    entries: Sequence[Entry], limit: int | None, *, seed: int
) -> Sequence[Entry]:
    """Return baselines' training clips, all or a sample if limited, independent of the entrants."""
    if limit is None:
        return entries
    return sample_balanced_entries(entries, _LESSONS * limit, seed=seed)[0]


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
    pairs = facts.find(benchmark.benchmark, benchmark.scenes.values())
    clips = {get_entry_scene(entry): _build_real_clip_columns(clip) for entry, clip in pairs}
    return (row | clips[row["scene"]] for row in rows)


def _build_real_clip_columns(clip: Clip | Failure) -> dict[str, Any]:
    if isinstance(clip, Failure):
        return {"_problem": str(clip)}
    width, height = clip.size
    return {
        "_location": clip.location,
        "_width": width,
        "_height": height,
        "_duration_us": convert_to_microseconds(clip.facts.video.duration_s),
    }


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
        picture = None if setting is CreatorInput.TEXT else _read_first_frame(file, reader)
    if isinstance(picture, Failure):
        return picture
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


def build_name_only_brief(scene: str, file_stem: str, setting: CreatorInput) -> ClipBrief:
    """Build a brief that contains only names, for a creator whose clips exist already."""
    return ClipBrief(
        id=scene, setting=setting, width=1, height=1, duration_us=1, seed=0, file_stem=file_stem
    )


def _read_first_frame(file: Path, reader: MediaReader) -> bytes | Failure:
    frames = reader.frames(file, sampling=FIRST_FRAME_PLAN, encoding="rgb24")
    if isinstance(frames, Failure):
        return Failure(FailureReason.NO_BRIEF, f"no first frame of its real clip: {frames}")
    return encode_png(frames.frames[0].rgb())
