"""The last step: splits are drawn, media copied, manifest, card and checksums written."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any, Final

from unreel.core.errors import UnreadableSourceError
from unreel.core.identity import clip_id
from unreel.core.writing import PART
from unreel.curate.freeze.card import Card, write_card
from unreel.curate.freeze.labels import find_lack
from unreel.curate.freeze.manifest import (
    METADATA,
    manifest_row,
    media_name,
    picture_name,
    write_manifest,
)
from unreel.curate.freeze.section import SPLITS, FreezeSection
from unreel.curate.freeze.splits import draw_splits
from unreel.curate.piece import MadeFile, Piece
from unreel.curate.state import AuditSummary, Frozen, RecipeHead, State, Work
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
NOT_AUDITED: Final = AuditSummary(
    text="Not audited: the recipe has no `[audit]`.", document={"audited": False}
)


def take(section: FreezeSection, work: Work, state: State) -> State:
    """The benchmark is written, unless its labels leak and nobody accepts that."""
    state.require_pieces("freeze")
    if state.leaks and not work.accept_leak:
        return state
    return replace(state, frozen=freeze(section, work, state))


def freeze(section: FreezeSection, work: Work, state: State) -> Frozen:
    """Write the benchmark below the workbench; a folder with its checksums is whole.

    Media are named by their content, so a freeze that was cut short goes on where it was.
    """
    bench, pieces = work.bench, state.pieces
    audit = state.audit or NOT_AUDITED
    splits = draw_splits(bench, pieces, shares=section.shares, seed=work.recipe.seed)
    tally = Counter((splits[piece.clip.id], piece.entry.label.value) for piece in pieces)
    if (lack := find_lack(tally, section)) is not None:
        raise lack
    target = bench.place / FROZEN
    media = _files(pieces, splits)
    _clear(target, keep=media)
    for name, file in sorted(media.items()):
        _copy(file, target, name=name, access=bench.access)
    by_split = {
        split: [manifest_row(piece, split) for piece in pieces if splits[piece.clip.id] == split]
        for split in SPLITS
    }
    shown = json.dumps(published_recipe(work.recipe), indent=2, sort_keys=True)
    card = Card(
        name=work.recipe.name,
        version=section.version,
        about=section.about,
        citation=section.citation,
        rows=[row for rows in by_split.values() for row in rows],
        left_out=state.left_out,
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


def published_recipe(recipe: RecipeHead) -> dict[str, Any]:
    """The recipe as the benchmark tells it: of a path that only this machine has, the last name."""
    shown: dict[str, Any] = recipe.model_dump(mode="json", exclude_none=True)
    for source in shown["source"]:
        source["path"] = _last_name(source["path"])
    if "decisions" in shown.get("screen", {}):
        shown["screen"]["decisions"] = _last_name(shown["screen"]["decisions"])
    return shown


def _last_name(path: str) -> str:
    return PurePath(path).name if PurePath(path).is_absolute() else path


def _files(pieces: Sequence[Piece], splits: Mapping[str, str]) -> dict[str, MadeFile]:
    """Clips, their cleaned copies and their first frames, by the name they get."""
    files: dict[str, MadeFile] = {}
    for piece in pieces:
        folder = splits[piece.clip.id]
        for clip in (piece.clip, piece.cleaned):
            if clip is not None:
                size_bytes = clip.facts.size_bytes
                files[f"{folder}/{media_name(clip)}"] = MadeFile(
                    sha256=clip.id, location=clip.location, size_bytes=size_bytes
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
