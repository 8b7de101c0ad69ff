"""Freeze step: splits of linked clips, and the benchmark that is written with checksums."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from unreel.curation.segment import (
    AuditSummary,
    CurationGlobalSettings,
    CurationJob,
    CurationState,
    FrozenBenchmark,
    SegmentTable,
    SortedRunWriter,
    format_digest_hex,
)
from unreel.curation.step_execution import CurationContext, Given, VersionedCurationStep
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
    totals = {label: sum(tally.get((split, label), 0) for split in splits) for label in Label}
    absent = [label for label in section.labels if not totals[label]]
    remedy = (
        "Add clips or scenes, give the small splits more (for example shares = [3, 1, 1]), or leave "
        "one out (shares = [4, 0, 1])"
    )
    if absent:
        present = ", ".join(f'"{label.value}"' for label in Label if totals[label])
        names = " and ".join(label.value for label in absent)
        remedy = f"Add a source of {names} clips, or write labels = [{present}] under [freeze]"
    problem = f"a split without one of the labels: {counts}"
    return InvalidSettingError("freeze", problem, remedy)


def format_label_counts(tally: Tally, split: str) -> str:
    """Format the number of clips of each label in a split, such as "3 real and 2 generated"."""
    return " and ".join(f"{tally.get((split, label), 0)} {label.value}" for label in Label)


Numbers = NDArray[np.intp]
_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitCandidate:
    """Clip to assign to a split, with its label and the ties that link it to other clips."""

    clip: str
    label: str
    ties: tuple[str, ...]
    """Source video, family and group; clips that share one of these get the same split."""


def assign_splits(
    candidates: Sequence[SplitCandidate], *, split_parts: Mapping[str, int], seed: int
) -> dict[str, str]:
    """Assign a split to each clip and return the splits by clip id, close to `split_parts` for each label.

    Linked clips form a bundle and get one split. The largest bundles are placed first; `seed`
    shuffles bundles of equal size. Each bundle goes to the split that lacks its labels most. The
    order of `candidates` does not matter.
    """
    clips = [member.clip for member in candidates]
    labels = np.unique([member.label for member in candidates], return_inverse=True)[1]
    ties = [(index, tie) for index, member in enumerate(candidates) for tie in member.ties]
    codes = np.unique([tie for _, tie in ties], return_inverse=True)[1]
    pairs = _link_clips_with_equal_codes(np.array([index for index, _ in ties], np.intp), codes)
    chosen = _assign_bundles_to_splits(
        np.array(clips),
        labels,
        [pairs],
        lambda clip: clips[clip],
        split_parts=split_parts,
        seed=seed,
    )
    splits = [split for split, share in split_parts.items() if share]
    return {clip: splits[code] for clip, code in zip(clips, chosen.tolist(), strict=True)}


def _assign_bundles_to_splits(
    clips: NDArray[Any],
    labels: NDArray[np.integer],
    pairs: Iterable[tuple[Numbers, Numbers]],
    spell: Callable[[int], str],
    *,
    split_parts: Mapping[str, int],
    seed: int,
) -> NDArray[np.int8]:
    """Return each clip's split as an index of the non-empty splits.

    Clips that are connected by `pairs` of clip indices share a bundle, which gets one split: that in
    which the squared distance from the target sizes grows least. `spell` returns the id of a clip.
    """
    n = len(clips)
    ends = [np.concatenate(indices) for indices in zip(*pairs, strict=True)]
    graph = coo_array((np.ones(len(ends[0]), np.int8), ends), shape=(n, n))
    n_bundles, joined = connected_components(graph, directed=False)
    of_clip = joined.astype(np.intp)
    by_id = np.argsort(clips, kind="stable")
    first = by_id[np.unique(of_clip[by_id], return_index=True)[1]]
    n_labels = int(labels.max(initial=0)) + 1
    counts = np.bincount(of_clip * n_labels + labels, minlength=n_bundles * n_labels)
    counts = counts.reshape(n_bundles, n_labels)
    draws = (bytes.fromhex(digest("split", str(seed), spell(int(clip)))) for clip in first)
    order = np.lexsort((np.fromiter(draws, "S32", len(first)), -counts.sum(axis=1)))

    # Values are scaled by their common denominator to integers, so that comparisons are exact.
    sizes, totals = [share for share in split_parts.values() if share], counts.sum(axis=0).tolist()
    multiple = lcm(*(size * total for size in sizes for total in totals if total))
    weights = [[multiple // (size * total) if total else 0 for total in totals] for size in sizes]
    rates = [lcm(*sizes) // size for size in sizes]
    placed = [[0] * len(totals) for _ in sizes]
    n_placed = [0] * len(sizes)

    def place(bundle: Sequence[int]) -> int:
        strains = []
        for split, before in enumerate(placed):
            columns = zip(bundle, before, weights[split], strict=True)
            strain = sum(size * (2 * already + size) * weight for size, already, weight in columns)
            strains.append((strain, n_placed[split] * rates[split]))
        split = strains.index(min(strains))
        for label, size in enumerate(bundle):
            placed[split][label] += size
            n_placed[split] += size
        return split

    chosen = np.empty(len(order), np.int8)
    for start in range(0, len(order), _AT_ONCE):
        part = order[start : start + _AT_ONCE]
        chosen[part] = [place(bundle) for bundle in counts[part].tolist()]
    return chosen[of_clip]


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
    context: CurationContext, segments: SegmentTable, *, split_parts: Sequence[int], seed: int
) -> NDArray[np.int8]:
    """Assign a split to each segment; return its index in `SPLITS`. Stored results are reused."""
    settings = {"shares": split_parts, "seed": seed}
    step = VersionedCurationStep(
        name="splits", version=1, settings=settings, finds=TypeAdapter(SplitAssignment)
    )
    by_split = dict(zip(SPLITS, split_parts, strict=True))

    def decide() -> Callable[[int], SplitAssignment]:
        clips = segments.rows.digests("clip")
        labels = segments.codes("label")[0]
        # Pairs of segments with the same bytes, source video, family or group.
        pairs = [
            _link_clips_with_equal_codes(np.arange(len(segments)), segments.rows.digests(name))
            for name in ("clip", "source")
        ]
        for name in ("family", "group"):
            codes, values = segments.codes(name)
            named = np.flatnonzero(codes != values.index("").as_py())
            pairs.append(_link_clips_with_equal_codes(named, codes[named]))
        chosen = _assign_bundles_to_splits(
            clips,
            labels,
            pairs,
            lambda i: format_digest_hex(clips[i]),
            split_parts=by_split,
            seed=seed,
        )
        splits = [split for split, share in by_split.items() if share]
        return lambda index: SplitAssignment(split=splits[chosen[index]])

    def build_input(row: Row) -> Given:
        ties = [f"source {row['source'].hex()}"]
        ties += [f"{tie} {row[tie]}" for tie in ("family", "group") if row[tie]]
        return {"label": row["label"], "ties": ties}

    requests = segments.subjects(build_input, ("label", "source", "family", "group"))

    def parse_split(name: str) -> int:
        if name not in SPLITS:  # the name becomes a directory of the benchmark
            raise UnreadableSourceError(
                "steps/splits.lance",
                f"{name!a} is not a split of a benchmark",
                "Another program wrote this: make it again",
            )
        return SPLITS.index(name)

    results = context.run_cached(step, requests, decide)
    return np.fromiter((parse_split(row.split) for row in results), np.int8)


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
    splits = assign_segment_splits(
        context, segments, split_parts=section.shares, seed=job.recipe.seed
    )
    labels = segments.strings("label")
    counts = Counter((SPLITS[split], label) for split, label in zip(splits, labels, strict=True))
    if (lack := build_missing_label_error(counts, section)) is not None:
        raise lack
    target, audit = context.place / FROZEN, state.audit or NOT_AUDITED
    written = write_split_manifests(
        segments, splits, job.directory.folder, in_place=section.in_place
    )
    media = written.media
    # Files of an earlier freeze that this one does not contain, tables and checksums first. Foreign
    # files are kept, except links: publishing the folder would publish their targets.
    target.require_plain(whole=True)
    published = BenchmarkMedia(media.folder, ()) if section.in_place else media
    strays = published.strays(iter(sorted(target.names())))
    stale = [name for name in strays if _WRITTEN.fullmatch(name)]
    for name in sorted(stale, key=lambda name: name.partition("/")[2].startswith("media/")):
        target.remove(name)
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
    state_hash, spool = hashlib.sha256(), job.directory.folder
    with spool.create(CHECKSUMS) as checksums:
        for name, value in merge(sorted(sums.items()), ((n, file.sha256) for n, file in media)):
            line = f"{value}  {name}\n".encode()
            state_hash.update(line)
            checksums.write(line)
    target.put(CHECKSUMS, spool.root / CHECKSUMS, published=True)
    return FrozenBenchmark(place=target.uri, clips=clips, digest=state_hash.hexdigest())


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
        "contains no frozen benchmark",
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
