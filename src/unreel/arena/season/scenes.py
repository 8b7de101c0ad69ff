"""Scenes of a season's benchmark, identified by the benchmark's hash."""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from unreel.arena.season.recipe import Season
from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.loader import Benchmark, open_benchmark
from unreel.benchmarks.statistics import BenchmarkStats
from unreel.benchmarks.subset import choose
from unreel.core.clip import Generated, Real, get_creator
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.identity import clip_id, digest
from unreel.core.names import read_clip_id, relative_name
from unreel.core.small_documents import read_bytes
from unreel.creators.folder import ENDINGS
from unreel.curation.freeze.step import CHECKSUMS

_MOST_BYTES: Final = 256 << 20
_LESSONS: Final = 4
"""Number of training clips of baselines per scene, if only some scenes are used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonBenchmark:
    """The benchmark of a season, read once."""

    benchmark: Benchmark
    digest: str
    entries: tuple[Entry, ...]
    """All of its split; with a limit, of the scenes that are played."""
    lessons: tuple[Entry, ...]
    """Training clips of baselines: the complete frozen split; with a limit, a number per scene."""
    scenes: Mapping[str, Entry]
    """Real clip of each scene, sorted by name."""
    rejected: tuple[Rejected, ...]
    """The first rows that cannot be used."""
    n_rejected: int

    def real(self) -> Iterator[Entry]:
        """Return the real clips of the season's scenes."""
        return (
            e for e in self.entries if isinstance(e.origin, Real) and get_scene(e) in self.scenes
        )

    def held(self, creator: str) -> list[Entry]:
        """Return the benchmark's clips of a creator."""
        made = (e for e in self.entries if isinstance(e.origin, Generated))
        return [e for e in made if get_creator(e.origin) == creator]

    def creators(self) -> list[str]:
        """Return the creators of its clips."""
        return sorted({e.origin.creator for e in self.entries if isinstance(e.origin, Generated)})


def name_files(scenes: Iterable[str]) -> dict[str, str]:
    """Return the name that a file for each scene has, without folder and ending: `x` for `clips/x.mp4`.

    Scenes that would share a name keep their folder, and their ending if that is all that differs.
    """
    all_scenes = list(scenes)
    names = {scene: _drop_ending(scene).rpartition("/")[2] or scene for scene in all_scenes}
    for longer in (_drop_ending, str):
        tally = Counter(names.values())
        names |= {scene: longer(scene) for scene in all_scenes if tally[names[scene]] > 1}
    return names


def _drop_ending(scene: str) -> str:
    stem, dot, ending = scene.rpartition(".")
    return stem if stem and f"{dot}{ending.lower()}" in ENDINGS else scene


def get_scene(entry: Entry) -> str:
    """Return the scene of a clip: its group, or the clip itself if it has none."""
    return entry.group or entry.name


def open_scenery(season: Season, *, outside: bool = False) -> SeasonBenchmark:
    """Open the benchmark of `season` and select the scenes of the season.

    Raises:
        UnreelError: The benchmark cannot be read, has no real clip, or is frozen and incomplete.
    """
    recipe, path = season.recipe, season.benchmark
    mapping = recipe.mapping or None
    benchmark = open_benchmark(path, recipe.layout, mapping=mapping, outside=outside)
    reading = BenchmarkStats()
    usable = [e for e in reading.watch(benchmark) if recipe.split in {None, e.split}]
    if not usable or reading.identity is None:
        raise reading.nothing(str(path), recipe.split)
    told = reading.identity.fingerprint
    if (benchmark.root / CHECKSUMS).is_file():
        told = f"{told}+{_check_sums(benchmark.root)}"
    scenes = _select_scene_entries(usable, recipe.limit, seed=recipe.seed)
    if not scenes:
        problem, remedy = "holds no real clip", "Name a benchmark with both sides, or another split"
        raise UnreadableSourceError(str(path), problem, remedy)
    return SeasonBenchmark(
        benchmark=benchmark,
        digest=told,
        entries=tuple(_iter_sampled_entries(usable, scenes, recipe.limit, seed=recipe.seed)),
        lessons=tuple(_select_training_entries(usable, recipe.limit, seed=recipe.seed)),
        scenes=scenes,
        rejected=tuple(reading.rejected),
        n_rejected=reading.n_rejected,
    )


def require_digest(season: Season, scenery: SeasonBenchmark) -> None:
    """Refuse to play over another benchmark than the season names.

    Raises:
        InvalidSettingError: The hash differs, or none is written.
    """
    written, found = season.recipe.digest, scenery.digest
    if written == found:
        return
    setting, problem = "digest", f"{season.recipe.benchmark} is another benchmark: {found}"
    remedy = "Bring back the one that the season names, or name this one in a season of its own"
    if not written:
        problem = "the season does not say by a hash which benchmark it plays over"
        remedy = f'Write digest = "{found}", or let `unreel arena plan --pin` write it'
    raise InvalidSettingError(setting, problem, remedy)


def _select_scene_entries(
    entries: Collection[Entry], limit: int | None, *, seed: int
) -> dict[str, Entry]:
    first: dict[str, Entry] = {}
    for entry in sorted(entries, key=lambda e: e.name):
        if isinstance(entry.origin, Real):
            first.setdefault(get_scene(entry), entry)
    drawn = sorted(first, key=lambda scene: digest("scene", str(seed), scene))[:limit]
    return {scene: first[scene] for scene in sorted(drawn)}


def _iter_sampled_entries(
    entries: Sequence[Entry], scenes: Collection[str], limit: int | None, *, seed: int
) -> Iterator[Entry]:
    """Return all clips; with a limit those of the sampled scenes, and a sample of each creator's other clips."""
    real = {get_scene(e) for e in entries if isinstance(e.origin, Real)}
    taken: Counter[str] = Counter()
    ordered = sorted(entries, key=lambda e: digest("clip", str(seed), e.name))
    for entry in entries if limit is None else ordered:
        alone = get_scene(entry) not in real
        if limit is not None and alone:
            taken[get_creator(entry.origin)] += 1
        if (
            limit is None
            or get_scene(entry) in scenes
            or (alone and taken[get_creator(entry.origin)] <= limit)
        ):
            yield entry


def _select_training_entries(
    entries: Sequence[Entry], limit: int | None, *, seed: int
) -> Sequence[Entry]:
    """Return the training clips of baselines, independent of the entrants: a later creator must not change them."""
    if limit is None:
        return entries
    return choose(entries, _LESSONS * limit, seed=seed).entries


def _check_sums(root: Path) -> str:
    """Check every file of a frozen benchmark against its checksum; return the hash of the checksums."""
    data = read_bytes(root / CHECKSUMS, most=_MOST_BYTES)
    for line in data.decode(errors="replace").splitlines():
        told, _, name = line.partition("  ")
        file = root / relative_name(name)
        if not file.is_file() or clip_id(file) != read_clip_id(told, str(root / CHECKSUMS)):
            problem, remedy = "not the file that was frozen", "Get the benchmark again"
            raise UnreadableSourceError(str(file), problem, remedy)
    return hashlib.sha256(data).hexdigest()
