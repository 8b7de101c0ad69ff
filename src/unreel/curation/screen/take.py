"""Select segments: screens use measurements, people overrule them, a queue shows both."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from unreel.benchmarks.entry import Rejected
from unreel.benchmarks.tables import read_table
from unreel.core.errors import UnreadableSourceError
from unreel.curation.piece import ClipSegment, ExcludedSegment
from unreel.curation.screen.screens import (
    Choice,
    FailedScreen,
    Judgement,
    ScreenInput,
    build_screen,
    judge,
)
from unreel.curation.screen.section import ScreenSection
from unreel.curation.state import CurationJob, CurationState

QUEUE: Final = "queue.jsonl"
_CHOICES: Final = ("keep", "remove")


def take(section: ScreenSection, work: CurationJob, state: CurationState) -> CurationState:
    """Return the segments that pass every screen or that a person keeps; rewrite the queue."""
    screens = [build_screen(name, settings) for name, settings in section.screens.items()]
    decided = {} if section.decisions is None else read_decisions(work.root / section.decisions)
    folder = work.shelf.folder
    with folder.create_text(QUEUE) as queue:

        def judged(piece: ClipSegment) -> ClipSegment | ExcludedSegment:
            choice, findings = decided.get(piece.id), _findings(piece)
            by_itself = judge(findings, screens)
            line = _line(piece, by_itself, choice)
            queue.write(json.dumps(line, ensure_ascii=False) + "\n")
            judgement = judge(findings, screens, decided=choice) if choice else by_itself
            if isinstance(judgement, FailedScreen):
                return piece.left_out("screen", judgement.screen, judgement.reason)
            return replace(piece, shots=())  # nobody judges by them any more

        sifted = work.shelf.sift("screen", map(judged, state.pieces))
    work.bench.place.put(QUEUE, folder.root / QUEUE)
    return state.after(sifted)


def read_decisions(file: Path) -> dict[str, Choice]:
    """Return the decisions of people by segment; lines of the queue without a decision are skipped.

    Raises:
        UnreadableSourceError: A line is damaged or holds another word than `keep` or `remove`.
    """
    found: dict[str, Choice] = {}
    for number, row in enumerate(read_table(file), start=1):
        if isinstance(row, Rejected):
            raise UnreadableSourceError(str(file), str(row), "Correct the line")
        word = row.get("decision") or ""
        if not word:
            continue
        if word not in _CHOICES or "piece" not in row:
            problem, remedy = f"line {number} decides {word!r}", "Write keep or remove"
            raise UnreadableSourceError(str(file), problem, remedy)
        found[str(row["piece"])] = word
    return found


def _findings(piece: ClipSegment) -> ScreenInput:
    shot = piece.shots[0]
    crop, video = piece.cut.crop, piece.clip.facts.video
    return ScreenInput(
        clip=piece.clip.id,
        duration_s=piece.length_s,
        n_frames=shot.end_frame - shot.first_frame,
        width=video.width if crop is None else crop.width,
        height=video.height if crop is None else crop.height,
        motion=shot.motion,
        sharpness=shot.sharpness,
        noise=shot.noise,
        lightness=shot.lightness,
        extra=dict(piece.notes),
    )


def _line(piece: ClipSegment, judgement: Judgement, choice: Choice | None) -> dict[str, Any]:
    removed = judgement if isinstance(judgement, FailedScreen) else None
    return {
        "piece": piece.id,
        "name": piece.entry.name,
        "label": piece.entry.label.value,
        "location": piece.clip.location,
        "start_s": str(piece.start_s),
        "length_s": str(piece.length_s),
        "proposed": "remove" if removed else "keep",
        "screen": removed.screen if removed else "",
        "reason": removed.reason if removed else "",
        "decision": choice or "",
    }
