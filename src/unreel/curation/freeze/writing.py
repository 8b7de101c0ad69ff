"""One pass over the pieces of a freeze: manifests, the list of media, and what the card counts."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unreel.core.identity import clip_id
from unreel.core.writing import OutputDirectory
from unreel.curation.freeze.card import ManifestStats
from unreel.curation.freeze.manifest import ManifestWriter, manifest_row
from unreel.curation.freeze.media import BenchmarkMedia, files_of
from unreel.curation.freeze.section import SPLITS
from unreel.curation.pieces import SegmentTable
from unreel.curation.sorted_runs import SortedRuns


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeResult:
    """Result of the writing pass; the manifests are in the folder, named by split."""

    media: BenchmarkMedia
    tally: ManifestStats
    sums: Mapping[str, str]
    """SHA-256 of each split's manifest."""


def write_manifests(
    pieces: SegmentTable, splits: NDArray[np.int8], folder: OutputDirectory, *, in_place: bool
) -> FreezeResult:
    """Write a manifest for each split that has clips; `pieces` come in the order of their names."""
    tally, runs = ManifestStats(), SortedRuns(folder, "media")
    there = [SPLITS[code] for code in np.unique(splits)]
    with ExitStack() as stack:
        manifests = {
            split: ManifestWriter(stack.enter_context(folder.create(split))) for split in there
        }
        for piece, code in zip(pieces, splits.tolist(), strict=True):
            split = SPLITS[code]
            row = manifest_row(piece, split, in_place=in_place)
            manifests[split].add(row)
            tally.add(row)
            for name, file in files_of(piece, split, in_place=in_place):
                runs.add((name, file.sha256, file.location, file.size_bytes))
        for manifest in manifests.values():
            manifest.end()
    sums = {split: clip_id(folder.root / split) for split in there}
    return FreezeResult(media=BenchmarkMedia(folder, runs.end()), tally=tally, sums=sums)
