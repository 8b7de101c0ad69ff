"""The audit of a set on its way to be frozen: observed clip by clip, judged as a whole."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from unreel.core.clip import Generated
from unreel.core.estimate import Estimate
from unreel.core.failure import Failure
from unreel.core.identity import digest
from unreel.curate.audit.audit import Audit, Finding, ViewAudit, audit
from unreel.curate.audit.frame import frame_features
from unreel.curate.audit.observation import Observation
from unreel.curate.freeze import Verdict
from unreel.curate.piece import Piece
from unreel.curate.step import Found, StepName, Subject, Workbench, to_json
from unreel.curate.steps.marking import MARKS, WATERMARK, read_texts
from unreel.curate.watermark.clip import watermarks_of
from unreel.curate.watermark.mark import Watermarks
from unreel.media.reader import MediaReader

AUDIT: Final = "audit"
_JSON: Final = TypeAdapter(Audit)
_OBSERVATION: Final = TypeAdapter(Observation)
_DIGITS: Final = 6
"""Features are kept to so many: the last ones depend on how many threads added numbers up."""


def audit_pieces(bench: Workbench, pieces: Sequence[Piece], *, texts: bool, seed: int) -> Verdict:
    """Whether the labels of `pieces` can be told without looking.

    Marks that an earlier step found are believed; other clips are looked at now.
    """
    step = StepName(name=AUDIT, version=1, settings={"texts": texts})
    subjects = [piece.subject(marked=WATERMARK in piece.notes) for piece in pieces]
    found = bench.ask(step, subjects, partial(_look, texts=texts))
    observed = {
        piece.clip: _observation(piece, one) for piece, one in zip(pieces, found, strict=True)
    }
    whole = StepName(name=f"{AUDIT}-verdict", version=1, settings={"seed": seed})
    members = [piece.subject(observed=_mark(observed[piece.clip])) for piece in pieces]

    def decide(asked: Sequence[Subject]) -> list[dict[str, Any]]:
        judged = audit([observed[one.clip] for one in asked], seed=seed)
        told = {
            "text": _tell(judged),
            "document": _rounded(_JSON.dump_python(judged, mode="json")),
            "leaks": judged.finding is Finding.LEAKS,
        }
        return [told] + [{}] * (len(asked) - 1)

    (verdict,) = filter(None, bench.settle(whole, members, decide))
    return Verdict(**verdict)


def _mark(observation: Observation) -> str:
    return digest(to_json(_OBSERVATION.dump_python(observation, mode="json")))


def _look(reader: MediaReader, file: Path, given: Found, *, texts: bool) -> Found | Failure:
    middle = reader.frames(file, sampling="uniform-1", encoding="rgb24")
    if isinstance(middle, Failure):
        return middle
    features = frame_features(middle.frames[0].rgb())
    found: dict[str, Any] = {"frame": _rounded(dict(features))}
    if not given["marked"]:
        marks = watermarks_of(file, reader=reader, read_text=read_texts() if texts else None)
        if isinstance(marks, Failure):
            return marks
        found["marks"] = MARKS.dump_python(marks, mode="json")
    return found


def _observation(piece: Piece, found: Found | Failure) -> Observation:
    origin = piece.entry.origin
    return Observation(
        clip=piece.entry.name,
        creator=origin.creator if isinstance(origin, Generated) else None,
        group=piece.entry.group or piece.family or piece.source,
        facts=piece.facts,
        frame=found if isinstance(found, Failure) else found["frame"],
        watermarks=found if isinstance(found, Failure) else _marks(piece, found),
    )


def _marks(piece: Piece, found: Found) -> Watermarks:
    return MARKS.validate_python(found.get("marks", piece.notes.get(WATERMARK)))


def _rounded(value: Any) -> Any:
    match value:
        case float():
            return float(f"{value:.{_DIGITS}g}")
        case dict():
            return {key: _rounded(item) for key, item in value.items()}
        case list():
            return [_rounded(item) for item in value]
        case _:
            return value


def _tell(judged: Audit) -> str:
    """The audit for the card."""
    rows = "\n".join(map(_row, judged.views))
    told = _WORDS[judged.finding]
    return (
        f"{told}\n\n| a model that sees only | finds | AUC [95 % interval] | what tells most |\n"
        f"| --- | --- | --- | --- |\n{rows}\n\nModels are judged on creators that they did not "
        "learn from; 0.5 is chance. A frame is part of looking, so it warns and does not decide. "
        "`audit.json` holds the details."
    )


_WORDS: Final = {
    Finding.LEAKS: "**The labels leak**: a score on this benchmark may be read off the files.",
    Finding.CLEAN: "No leak was found.",
    Finding.INCONCLUSIVE: "No leak was proven, and there are too few clips to exclude one.",
}


def _row(view: ViewAudit) -> str:
    auc = view.auc
    shown = f"{auc.value:.2f} [{auc.low:.2f}, {auc.high:.2f}]" if isinstance(auc, Estimate) else "—"
    tells = ", ".join(leak.feature for leak in view.leaks[:3]) or "—"
    return f"| {view.view.value} | {view.finding.value} | {shown} | {tells} |"
