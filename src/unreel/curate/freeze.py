"""The last step: splits are drawn, media copied, manifest, card and checksums written."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

from unreel.core.errors import UnreadableSourceError
from unreel.core.identity import clip_id
from unreel.core.writing import PART
from unreel.curate.card import Card, write_card
from unreel.curate.manifest import METADATA, manifest_row, media_name, picture_name, write_manifest
from unreel.curate.piece import LeftOut, MadeFile, Piece
from unreel.curate.recipe import SPLITS, CurateRecipe, FreezeSection
from unreel.curate.splits import Member, assign_splits
from unreel.curate.step import StepName, Subject, Workbench
from unreel.engine.access import Access, local_copy
from unreel.engine.place import Place

FROZEN: Final = "benchmark"
CHECKSUMS: Final = "checksums.sha256"
CARD: Final = "README.md"
RECIPE: Final = "recipe.json"
AUDIT: Final = "audit.json"
_TOP: Final = (CARD, RECIPE, AUDIT, CHECKSUMS)
_WRITTEN: Final = re.compile(
    rf"{'|'.join(map(re.escape, _TOP))}|{re.escape(PART)}[0-9a-f]+|(?:{'|'.join(SPLITS)})/.+",
    re.DOTALL,
)
"""What belongs to a freeze: its files, those that were not whole when it was killed, and the folders
of its splits with all that is in them, because whoever loads the benchmark loads them whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the audit found, for the card and for the folder."""

    text: str
    document: Mapping[str, Any]
    leaks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """A benchmark that was written."""

    place: str
    clips: Mapping[str, int]
    """Clips by split."""
    digest: str
    """SHA-256 of its checksums: equal for equal benchmarks."""


def draw_splits(bench: Workbench, pieces: Sequence[Piece], recipe: CurateRecipe) -> dict[str, str]:
    """The split of each piece, by the id of its clip."""
    section = recipe.freeze or FreezeSection()
    step = StepName(
        name="splits", version=1, settings={"shares": section.shares, "seed": recipe.seed}
    )
    subjects = [piece.subject(label=piece.entry.label.value, ties=_ties(piece)) for piece in pieces]
    shares = dict(zip(SPLITS, section.shares, strict=True))

    def decide(asked: Sequence[Subject]) -> list[dict[str, str]]:
        members = [
            Member(clip=one.clip, label=one.given["label"], ties=tuple(one.given["ties"]))
            for one in asked
        ]
        chosen = assign_splits(members, shares=shares, seed=recipe.seed)
        return [{"split": chosen[one.clip]} for one in asked]

    found = bench.settle(step, subjects, decide)
    return {piece.clip: _split(one["split"]) for piece, one in zip(pieces, found, strict=True)}


def _split(name: object) -> str:
    """A split is a folder of the benchmark: a table that something else wrote names no other."""
    for split in SPLITS:
        if split == name:
            return split
    source, problem = "steps/splits.lance", f"{name!a} is no split of a benchmark"
    raise UnreadableSourceError(source, problem, "Something else wrote this: make it again")


def freeze(
    bench: Workbench,
    pieces: Sequence[Piece],
    *,
    recipe: CurateRecipe,
    left_out: Sequence[LeftOut],
    audit: Verdict,
) -> Frozen:
    """Write the benchmark below the workbench; a folder with its checksums is whole.

    Media are named by their content, so a freeze that was cut short goes on where it was.
    """
    section = recipe.freeze or FreezeSection()
    splits = draw_splits(bench, pieces, recipe)
    target = bench.place / FROZEN
    media = _files(pieces, splits)
    _clear(target, keep=media)
    for name, file in sorted(media.items()):
        _copy(file, target, name=name, access=bench.access)
    by_split = {
        split: [manifest_row(piece, split) for piece in pieces if splits[piece.clip] == split]
        for split in SPLITS
    }
    shown = json.dumps(published_recipe(recipe), indent=2, sort_keys=True)
    card = Card(
        name=recipe.name,
        version=section.version,
        about=section.about,
        rows=[row for rows in by_split.values() for row in rows],
        left_out=left_out,
        audit=audit.text,
        recipe=shown,
    )
    files = {
        CARD: write_card(card).encode(),
        RECIPE: (shown + "\n").encode(),
        AUDIT: (json.dumps(audit.document, indent=2, sort_keys=True) + "\n").encode(),
    } | {f"{split}/{METADATA}": write_manifest(rows) for split, rows in by_split.items() if rows}
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    sums |= {name: file.sha256 for name, file in media.items()}
    files[CHECKSUMS] = "".join(f"{sums[name]}  {name}\n" for name in sorted(sums)).encode()
    for name, data in files.items():
        target.put(name, data, published=True)
    return Frozen(
        place=target.uri,
        clips={split: len(rows) for split, rows in by_split.items()},
        digest=hashlib.sha256(files[CHECKSUMS]).hexdigest(),
    )


def published_recipe(recipe: CurateRecipe) -> dict[str, Any]:
    """The recipe as the benchmark tells it: of a path that only this machine has, the last name."""
    told: dict[str, Any] = recipe.model_dump(mode="json", exclude_none=True)
    for source in told["source"]:
        source["path"] = _last_name(source["path"])
    if "decisions" in told.get("screen", {}):
        told["screen"]["decisions"] = _last_name(told["screen"]["decisions"])
    return told


def _last_name(path: str) -> str:
    return PurePath(path).name if PurePath(path).is_absolute() else path


def _ties(piece: Piece) -> list[str]:
    ties = [f"source {piece.source}"]
    if piece.family:
        ties.append(f"family {piece.family}")
    if piece.entry.group:
        ties.append(f"group {piece.entry.group}")
    return ties


def _files(pieces: Sequence[Piece], splits: Mapping[str, str]) -> dict[str, MadeFile]:
    """Clips, their cleaned copies and their first frames, by the name they get."""
    files: dict[str, MadeFile] = {}
    for piece in pieces:
        folder = splits[piece.clip]
        for clip in (piece, piece.cleaned):
            if clip is not None:
                size_bytes = clip.facts.size_bytes
                files[f"{folder}/{media_name(clip)}"] = MadeFile(
                    sha256=clip.clip, location=clip.location, size_bytes=size_bytes
                )
        if piece.first_frame is not None:
            files[f"{folder}/{picture_name(piece)}"] = piece.first_frame
    return files


def _clear(target: Place, *, keep: Mapping[str, MadeFile]) -> None:
    """Take away what an earlier freeze left and this one does not hold, tables and checksums first.

    What does not belong to a freeze is somebody's own and stays, but for links: whoever publishes the
    folder would publish what they lead to.
    """
    target.require_plain(whole=True)
    gone = [name for name in target.names() if name not in keep and _WRITTEN.fullmatch(name)]
    for name in sorted(gone, key=lambda name: name.partition("/")[2].startswith("media/")):
        target.remove(name)


def _copy(source: MadeFile, target: Place, *, name: str, access: Access) -> None:
    if target.size(name) == source.size_bytes:
        return  # a put is whole or not there, and its name is its content
    with local_copy(source.location, access) as file:
        if not file.is_file() or clip_id(file) != source.sha256:
            problem = "the file is not the one that was ingested"
            raise UnreadableSourceError(source.location, problem, "Put it back, or run again")
        target.put(name, file, published=True)
