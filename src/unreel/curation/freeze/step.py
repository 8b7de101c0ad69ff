"""Freeze step: splits of linked clips, and the benchmark that is written with checksums."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from heapq import merge
from math import lcm
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from unreel.core.content_ids import compute_clip_id, digest
from unreel.core.errors import InvalidSettingError, UnreadableSourceError, UnreelError
from unreel.core.input_files import RECIPE_BYTES, parse_json_object, read_limited_bytes
from unreel.core.judgement import Label
from unreel.core.output_files import PART, OutputDirectory
from unreel.curation.freeze.data_card import BenchmarkCard, ManifestStats, format_benchmark_card
from unreel.curation.freeze.media import (
    METADATA,
    BenchmarkMedia,
    ManifestWriter,
    build_manifest_row,
    copy_benchmark_media,
    iter_published_files,
)
from unreel.curation.recipe import (
    SPLITS,
    CurationRecipe,
    FreezeRecipeSection,
    parse_curation_recipe,
)
from unreel.curation.segment import SortedRunWriter, format_digest_hex
from unreel.curation.segment_table import (
    AuditSummary,
    CurationGlobalSettings,
    CurationJob,
    CurationState,
    FrozenBenchmark,
    SegmentTable,
)
from unreel.curation.step_execution import CurationContext, Given, VersionedCurationStep
from unreel.engine.location import StorageLocation
from unreel.engine.stage import Row

Tally = Mapping[tuple[str, str], int]
"""Number of clips by split and label."""


def build_missing_label_error(
    tally: Tally, section: FreezeRecipeSection
) -> InvalidSettingError | None:
    """Return the error to raise if a split has no clip of a required label; `None` if none lacks one."""
    splits = [split for split, share in zip(SPLITS, section.shares, strict=True) if share]
    lacking = [
        split for split in splits for label in section.labels if not tally.get((split, label))
    ]
    if not lacking:
        return None
    counts = "; ".join(f"{split} has {format_label_counts(tally, split)}" for split in splits)
    setting, problem = "freeze", f"a split without one of the labels: {counts}"
    return InvalidSettingError(
        setting, problem, _format_missing_label_remedy(tally, splits, section)
    )


def format_label_counts(tally: Tally, split: str) -> str:
    """Format the number of clips of each label in a split, such as "3 real and 2 generated"."""
    return " and ".join(f"{tally.get((split, label), 0)} {label.value}" for label in Label)


def _format_missing_label_remedy(
    tally: Tally, splits: list[str], section: FreezeRecipeSection
) -> str:
    totals = {label: sum(tally.get((split, label), 0) for split in splits) for label in Label}
    absent = [label for label in section.labels if not totals[label]]
    if absent:
        present = ", ".join(f'"{label.value}"' for label in Label if totals[label])
        names = " and ".join(label.value for label in absent)
        return f"Add a source of {names} clips, or write labels = [{present}] under [freeze]"
    return (
        "Add clips or scenes, give the small splits more (for example shares = [3, 1, 1]), or leave "
        "one out (shares = [4, 0, 1])"
    )


Numbers = NDArray[np.intp]
_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitCandidate:
    """Clip to assign to a split, with its label and the ties that link it to other clips."""

    clip: str
    label: str
    ties: tuple[str, ...]
    """Source video, family and group; clips that share one of these get the same split."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkedClipBundles:
    """Bundles of linked clips as arrays. All clips of a bundle must get the same split."""

    of_clip: NDArray[np.intp]
    first: NDArray[np.intp]
    labels: NDArray[np.int64]


def assign_splits(
    candidates: Sequence[SplitCandidate], *, shares: Mapping[str, int], seed: int
) -> dict[str, str]:
    """Assign a split to each clip and return the splits by clip id, close to `shares` for each label.

    Linked clips form a bundle and get one split. The largest bundles are placed first; `seed`
    shuffles bundles of equal size. Each bundle goes to the split that lacks its labels most. The
    order of `candidates` does not matter.
    """
    clips = [member.clip for member in candidates]
    labels = np.unique([member.label for member in candidates], return_inverse=True)[1]
    ties = [(index, tie) for index, member in enumerate(candidates) for tie in member.ties]
    codes = np.unique([tie for _, tie in ties], return_inverse=True)[1]
    pairs = _link_clips_with_equal_codes(np.array([index for index, _ in ties], np.intp), codes)
    bundles = bundle_linked_clips(np.array(clips), labels, [pairs])
    chosen = assign_bundles_to_splits(bundles, lambda clip: clips[clip], shares=shares, seed=seed)
    splits = [split for split, share in shares.items() if share]
    return {clip: splits[code] for clip, code in zip(clips, chosen.tolist(), strict=True)}


def bundle_linked_clips(
    clips: NDArray[Any], labels: NDArray[np.integer], pairs: Iterable[tuple[Numbers, Numbers]]
) -> LinkedClipBundles:
    """Group clips into bundles: clips that are connected by `pairs` of clip indices share a bundle."""
    n = len(clips)
    ends = [np.concatenate(indices) for indices in zip(*pairs, strict=True)]
    graph = coo_array((np.ones(len(ends[0]), np.int8), ends), shape=(n, n))
    n_bundles, joined = connected_components(graph, directed=False)
    of_clip = joined.astype(np.intp)
    order = np.argsort(clips, kind="stable")
    first = order[np.unique(of_clip[order], return_index=True)[1]]
    n_labels = int(labels.max(initial=0)) + 1
    tally = np.bincount(of_clip * n_labels + labels, minlength=n_bundles * n_labels)
    return LinkedClipBundles(
        of_clip=of_clip, first=first, labels=tally.reshape(n_bundles, n_labels)
    )


def assign_bundles_to_splits(
    bundles: LinkedClipBundles, spell: Callable[[int], str], *, shares: Mapping[str, int], seed: int
) -> NDArray[np.int8]:
    """Assign a split to each bundle; return each clip's split as an index of the non-empty splits.

    Args:
        bundles: Bundles of linked clips, which get one split.
        spell: Function from a clip index to the clip id.
        shares: Relative sizes by split; 0 for an empty split.
        seed: Seed of the order of bundles of equal size.
    """
    weights = [share for share in shares.values() if share]
    draws = (bytes.fromhex(digest("split", str(seed), spell(int(clip)))) for clip in bundles.first)
    digests = np.fromiter(draws, "S32", len(bundles.first))
    order = np.lexsort((digests, -bundles.labels.sum(axis=1)))
    greedy = _SplitAllocator(bundles.labels.sum(axis=0).tolist(), weights)
    chosen = np.empty(len(order), np.int8)
    for start in range(0, len(order), _AT_ONCE):
        part = order[start : start + _AT_ONCE]
        chosen[part] = [greedy.place(labels) for labels in bundles.labels[part].tolist()]
    return chosen[bundles.of_clip]


class _SplitAllocator:
    """Allocator that puts each bundle of linked clips into the split that lacks its labels most.

    This is the split where the squared distance from the target sizes grows least. Values are
    scaled by their common denominator to integers, so that comparisons are exact.
    """

    def __init__(self, totals: Sequence[int], shares: Sequence[int]) -> None:
        multiple = lcm(*(share * total for share in shares for total in totals if total))
        self._weights = [
            [multiple // (share * total) if total else 0 for total in totals] for share in shares
        ]
        self._rates = [lcm(*shares) // share for share in shares]
        self._placed = [[0] * len(totals) for _ in shares]
        self._n_placed = [0] * len(shares)

    def place(self, labels: Sequence[int]) -> int:
        """Assign a bundle, given its number of clips of each label, and return the index of its split."""
        strains = [
            (
                sum(
                    n * (2 * before + n) * weight
                    for n, before, weight in zip(labels, placed, weights, strict=True)
                ),
                n_placed * rate,
            )
            for placed, weights, n_placed, rate in zip(
                self._placed, self._weights, self._n_placed, self._rates, strict=True
            )
        ]
        split = strains.index(min(strains))
        for label, n in enumerate(labels):
            self._placed[split][label] += n
            self._n_placed[split] += n
        return split


def _link_clips_with_equal_codes(indices: Numbers, codes: NDArray[Any]) -> tuple[Numbers, Numbers]:
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    bound = ordered[1:] == ordered[:-1]
    return indices[order][:-1][bound], indices[order][1:][bound]


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitAssignment:
    """Split that was assigned to a clip."""

    split: str


def assign_segment_splits(
    context: CurationContext, segments: SegmentTable, *, shares: Sequence[int], seed: int
) -> NDArray[np.int8]:
    """Assign a split to each segment; return its index in `SPLITS`. Stored results are reused."""
    settings = {"shares": shares, "seed": seed}
    step = VersionedCurationStep(
        name="splits", version=1, settings=settings, finds=TypeAdapter(SplitAssignment)
    )
    by_split = dict(zip(SPLITS, shares, strict=True))

    def decide() -> Callable[[int], SplitAssignment]:
        clips = segments.rows.digests("clip")
        labels = segments.codes("label")[0]
        bundles = bundle_linked_clips(clips, labels, _iter_related_pairs(segments))
        chosen = assign_bundles_to_splits(
            bundles, lambda index: format_digest_hex(clips[index]), shares=by_split, seed=seed
        )
        splits = [split for split, share in by_split.items() if share]
        return lambda index: SplitAssignment(split=splits[chosen[index]])

    subjects = segments.subjects(_build_split_step_input, ("label", "source", "family", "group"))
    results = context.run_cached(step, subjects, decide)
    return np.fromiter((SPLITS.index(_require_split_name(row.split)) for row in results), np.int8)


def _iter_related_pairs(segments: SegmentTable) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield pairs of segment indices with the same bytes, source video, family or group."""
    for name in ("clip", "source"):
        yield _link_clips_with_equal_codes(np.arange(len(segments)), segments.rows.digests(name))
    for name in ("family", "group"):
        codes, values = segments.codes(name)
        named = np.flatnonzero(codes != values.index("").as_py())
        yield _link_clips_with_equal_codes(named, codes[named])


def _build_split_step_input(row: Row) -> Given:
    ties = [f"source {row['source'].hex()}"]
    ties += [f"{tie} {row[tie]}" for tie in ("family", "group") if row[tie]]
    return {"label": row["label"], "ties": ties}


def _require_split_name(name: str) -> str:
    """Return `name` if it is the name of a split.

    The name becomes a directory of the benchmark, so other names in a foreign table are rejected.
    """
    if name in SPLITS:
        return name
    raise UnreadableSourceError(
        "steps/splits.lance",
        f"{name!a} is no split of a benchmark",
        "Another program wrote this: make it again",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenManifests:
    """Result of writing the manifest of each split: the media files, the counts and the file hashes."""

    media: BenchmarkMedia
    tally: ManifestStats
    sums: Mapping[str, str]
    """SHA-256 of each split's manifest."""


def write_split_manifests(
    segments: SegmentTable, splits: NDArray[np.int8], directory: OutputDirectory, *, in_place: bool
) -> WrittenManifests:
    """Write a manifest for each split that has clips; `segments` must be sorted by name."""
    tally, runs = ManifestStats(), SortedRunWriter(directory, "media")
    present = [SPLITS[code] for code in np.unique(splits)]
    with ExitStack() as stack:
        manifests = {
            split: ManifestWriter(stack.enter_context(directory.create(split))) for split in present
        }
        for segment, code in zip(segments, splits.tolist(), strict=True):
            split = SPLITS[code]
            row = build_manifest_row(segment, split, in_place=in_place)
            manifests[split].add(row)
            tally.add(row)
            for name, file in iter_published_files(segment, split, in_place=in_place):
                runs.add((name, file.sha256, file.location, file.size_bytes))
        for manifest in manifests.values():
            manifest.end()
    sums = {split: compute_clip_id(directory.root / split) for split in present}
    return WrittenManifests(media=BenchmarkMedia(directory, runs.end()), tally=tally, sums=sums)


FROZEN = "benchmark"
CHECKSUMS = "checksums.sha256"
CARD = "README.md"
RECIPE = "recipe.json"
AUDIT = "audit.json"
_TOP = (CARD, RECIPE, AUDIT, CHECKSUMS)
_WRITTEN = re.compile(
    rf"{'|'.join(map(re.escape, _TOP))}|{re.escape(PART)}[0-9a-f]+|(?:{'|'.join(SPLITS)})/.+",
    re.DOTALL,
)
"""Pattern of a freeze's files: complete and temporary ones, and the folders of its splits with all
content, because readers of the benchmark load them completely."""
NOT_AUDITED = AuditSummary(
    text="Not audited: the recipe has no `[audit]`.", document={"audited": False}
)


def run_freeze_step(
    section: FreezeRecipeSection, job: CurationJob, state: CurationState
) -> CurationState:
    """Write the frozen benchmark, unless the audit found a label leak that is not accepted."""
    state.require_pieces("freeze")
    if state.leaks and not job.accept_leak:
        return state
    return replace(state, frozen=write_frozen_benchmark(section, job, state))


def write_frozen_benchmark(
    section: FreezeRecipeSection, job: CurationJob, state: CurationState
) -> FrozenBenchmark:
    """Write the frozen benchmark to the folder of the curation; its checksums are written last.

    A folder with checksums is complete. Media are named by their content, so an interrupted freeze
    resumes without copying them again.
    """
    context, segments = job.context, state.segments.by_name()
    splits = assign_segment_splits(context, segments, shares=section.shares, seed=job.recipe.seed)
    if (
        lack := build_missing_label_error(_count_clips_by_split(segments, splits), section)
    ) is not None:
        raise lack
    target, audit = context.place / FROZEN, state.audit or NOT_AUDITED
    written = write_split_manifests(
        segments, splits, job.directory.folder, in_place=section.in_place
    )
    media = written.media
    _remove_stale_files(target, BenchmarkMedia(media.folder, ()) if section.in_place else media)
    if not section.in_place:
        copy_benchmark_media(media, target, context)
    recipe = json.dumps(build_published_recipe(job.recipe), indent=2, sort_keys=True)
    card = BenchmarkCard(
        name=job.recipe.name,
        version=section.version,
        about=section.about,
        citation=section.citation,
        tally=written.tally,
        left_out=state.left_out,
        audit=audit.text,
        recipe=recipe,
    )
    texts = {
        CARD: format_benchmark_card(card).encode(),
        RECIPE: (recipe + "\n").encode(),
        AUDIT: (json.dumps(audit.document, indent=2, sort_keys=True) + "\n").encode(),
    }
    for name, data in texts.items():
        target.put(name, data, published=True)
    for split in written.sums:
        target.put(f"{split}/{METADATA}", job.directory.folder.root / split, published=True)
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in texts.items()}
    sums |= {f"{split}/{METADATA}": value for split, value in written.sums.items()}
    clips = {split: int((splits == code).sum()) for code, split in enumerate(SPLITS)}
    digest = _write_checksums(sums, media, target, job.directory.folder)
    return FrozenBenchmark(place=target.uri, clips=clips, digest=digest)


def _count_clips_by_split(
    segments: SegmentTable, splits: NDArray[np.int8]
) -> Counter[tuple[str, str]]:
    labels = segments.strings("label")
    return Counter((SPLITS[split], label) for split, label in zip(splits, labels, strict=True))


def _write_checksums(
    sums: Mapping[str, str],
    media: BenchmarkMedia,
    location: StorageLocation,
    spool_directory: OutputDirectory,
) -> str:
    """Write the checksum of every file, sorted by name, and return the digest of the checksum file."""
    state = hashlib.sha256()
    media_sums = ((name, file.sha256) for name, file in media)
    with spool_directory.create(CHECKSUMS) as file:
        for name, value in merge(sorted(sums.items()), media_sums):
            line = f"{value}  {name}\n".encode()
            state.update(line)
            file.write(line)
    location.put(CHECKSUMS, spool_directory.root / CHECKSUMS, published=True)
    return state.hexdigest()


def build_published_recipe(recipe: CurationGlobalSettings) -> dict[str, Any]:
    """Return the recipe for publication, with absolute paths shortened to their last name."""
    published: dict[str, Any] = recipe.model_dump(mode="json", exclude_none=True)
    for source in published["source"]:
        source["path"] = _shorten_absolute_path(source["path"])
    if published.get("freeze", {}).get("media") == "copy":
        del published["freeze"]["media"]  # a recipe without this key means copied media
    if "decisions" in published.get("screen", {}):
        published["screen"]["decisions"] = _shorten_absolute_path(published["screen"]["decisions"])
    return published


def _shorten_absolute_path(path: str) -> str:
    return PurePath(path).name if PurePath(path).is_absolute() else path


def _remove_stale_files(location: StorageLocation, media: BenchmarkMedia) -> None:
    """Remove files of an earlier freeze that this one does not contain, tables and checksums first.

    Foreign files are kept, except links: publishing the folder would publish their targets.
    """
    location.require_plain(whole=True)
    strays = media.strays(iter(sorted(location.names())))
    gone = [name for name in strays if _WRITTEN.fullmatch(name)]
    for name in sorted(gone, key=lambda name: name.partition("/")[2].startswith("media/")):
        location.remove(name)


def require_new_path(file: Path, setting: str) -> None:
    """Raise `InvalidSettingError`, about `setting`, if the path `file` exists, also as a broken link."""
    if file.exists() or file.is_symlink():
        raise InvalidSettingError(
            setting, f"{file} is there already", "Name another one, or remove it first"
        )


def require_empty_folder(folder: Path, setting: str) -> None:
    """Raise unless `folder` is missing or is an empty folder; `setting` is the option in the error."""
    if folder.is_symlink() or not folder.is_dir() or any(folder.iterdir()):
        require_new_path(folder, setting)


def find_frozen_benchmark(folder: Path) -> Path:
    """Return the directory of the frozen benchmark, which is `folder` or inside `folder`."""
    for path in (folder / FROZEN, folder):
        if (path / CHECKSUMS).is_file() and (path / RECIPE).is_file():
            return path
    raise UnreadableSourceError(
        str(folder),
        "there is no frozen benchmark",
        "Name the folder that `unreel curate run` prints, or the working folder around it",
    )


def read_frozen_recipe(benchmark: Path) -> CurationRecipe:
    """Read the frozen benchmark's recipe; raise `UnreadableSourceError` if it is none."""
    try:
        return parse_curation_recipe(
            parse_json_object(read_limited_bytes(benchmark / RECIPE, most=RECIPE_BYTES))
        )
    except UnreelError as error:
        raise UnreadableSourceError(
            str(benchmark / RECIPE),
            str(error),
            "Freeze the benchmark again with `unreel curate run`",
        ) from error
