"""Freeze step: writes splits, media, manifest, card and checksums; lookup of frozen benchmarks."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from heapq import merge
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unreel.core.content_ids import compute_clip_id
from unreel.core.errors import InvalidSettingError, UnreadableSourceError, UnreelError
from unreel.core.input_files import RECIPE_BYTES, parse_json_object, read_limited_bytes
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
from unreel.curation.freeze.splits import assign_segment_splits, build_missing_label_error
from unreel.curation.recipe import (
    SPLITS,
    CurationRecipe,
    FreezeRecipeSection,
    parse_curation_recipe,
)
from unreel.curation.segment_table import SegmentTable
from unreel.curation.state import (
    AuditSummary,
    CurationGlobalSettings,
    CurationJob,
    CurationState,
    FrozenBenchmark,
)
from unreel.curation.working_table import SortedRunWriter
from unreel.engine.location import StorageLocation


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
