"""One pass over the pieces of a freeze: manifests, the list of media, and what the card counts."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unreel.core.identity import clip_id
from unreel.core.writing import Folder
from unreel.curate.freeze.card import Tally
from unreel.curate.freeze.manifest import Manifest, manifest_row
from unreel.curate.freeze.media import Media, files_of
from unreel.curate.freeze.section import SPLITS
from unreel.curate.pieces import Pieces
from unreel.curate.sorted_runs import SortedRuns


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Result of the writing pass; the manifests are in the folder, named by split."""

    media: Media
    tally: Tally
    sums: Mapping[str, str]
    """SHA-256 of each split's manifest."""


def write_manifests(
    pieces: Pieces, splits: NDArray[np.int8], folder: Folder, *, in_place: bool
) -> Written:
    """Write a manifest for each split that has clips; `pieces` come in the order of their names."""
    tally, runs = Tally(), SortedRuns(folder, "media")
    there = [SPLITS[code] for code in np.unique(splits)]
    with ExitStack() as stack:
        manifests = {split: Manifest(stack.enter_context(folder.create(split))) for split in there}
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
    return Written(media=Media(folder, runs.end()), tally=tally, sums=sums)
