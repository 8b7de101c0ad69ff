"""A campaign over drawn clips as a ledger keeps it: what three people said, without any server."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from synthesise import ClipRecipe, planted_trace, synthesise
from unreel.annotation.campaign import (
    AnnotationInterface,
    AnnotationRecord,
    AnnotationTask,
    Annotator,
    AnnotatorClipCopy,
    Campaign,
    PrefillStudyArm,
    QuarantineReason,
    SubmissionQuarantine,
    TaskAssignment,
    TraceAnswer,
)
from unreel.annotation.ledger.connection import open_ledger
from unreel.core.box import Box
from unreel.core.content_ids import compute_clip_id
from unreel.core.judgement import Label
from unreel.core.trace import BoxAt, Trace

PEOPLE = tuple(Annotator(name, f"{name}@example.org") for name in ("ann", "bob", "cho"))
CAMPAIGN = "spring"
NOTHING = TraceAnswer(traces=(), label=Label.REAL)
START_US = 1_700_000_000_000_000
RECIPE = ClipRecipe(width=320, height=192, n_frames=72)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Where its parts lie."""

    bench: Path
    ledger: Path
    tasks: tuple[AnnotationTask, ...]


def recipe_of(name: str) -> ClipRecipe:
    """The drawn clip of that name: `film-0` is faultless, `veo-0` has one fault."""
    kind, _, number = name.partition("-")
    scene = "room" if int(number) % 2 else "street"
    return replace(RECIPE, scene=scene, seed=int(number), flawed=kind != "film")


def lay_out(root: Path, names: Sequence[str]) -> Path:
    """A benchmark of drawn clips."""
    root.mkdir(parents=True)
    lines = []
    for name in names:
        (root / f"{name}.mp4").write_bytes(synthesise(recipe_of(name)))
        label = "real" if name.startswith("film") else "generated"
        lines.append({"file_name": f"{name}.mp4", "name": name, "label": label, "creator": "Veo"})
    (root / "metadata.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return root


def task_of(bench: Path, name: str, *, is_known: bool = False) -> AnnotationTask:
    """The task about that clip, with its planted fault as known answer."""
    recipe = recipe_of(name)
    copy = AnnotatorClipCopy(
        clip=compute_clip_id(bench / f"{name}.mp4"),
        location=f"{name}.mp4",
        rate=recipe.rate,
        n_frames=recipe.n_frames,
        width=recipe.width,
        height=recipe.height,
    )
    return AnnotationTask(
        names=(name,), copies=(copy,), known=right_answer(name) if is_known else None
    )


def right_answer(name: str) -> TraceAnswer:
    """What there is to see."""
    recipe = recipe_of(name)
    if not recipe.flawed:
        return NOTHING
    return TraceAnswer(traces=(planted_trace(recipe),), label=Label.GENERATED)


def shifted(value: TraceAnswer, by: float, why: str = "") -> TraceAnswer:
    """The same marks, all boxes moved to the right by that share of the frame as far as there is room."""
    return replace(value, traces=tuple(_shift(trace, by, why) for trace in value.traces))


def _shift(trace: Trace, by: float, why: str) -> Trace:
    track = tuple(BoxAt(mark.at_us, _moved(mark.box, by)) for mark in trace.track)
    return replace(trace, track=track, explanation=why or trace.explanation)


def _moved(box: Box, by: float) -> Box:
    step = max(-box.x0, min(by, 1 - box.x1))
    return Box(box.x0 + step, box.y0, box.x1 + step, box.y1)


def records_of(
    tasks: Sequence[AnnotationTask], said: Mapping[str, Mapping[str, object]]
) -> Iterator[AnnotationRecord]:
    """What people said by the clip's name, then by theirs, one every 40 seconds."""
    for place, task in enumerate(tasks):
        for nth, (who, outcome) in enumerate(said.get(task.names[0], {}).items()):
            yield AnnotationRecord(
                campaign=CAMPAIGN,
                annotator=who,
                task=task.id,
                origin=f"studio:{who}:{task.id}",
                guidelines_version="g1",
                interface_version="v1",
                submitted_us=START_US + (place * 3 + nth) * 40_000_000,
                lead_us=(20 + 7 * nth) * 1_000_000,
                raw=json.dumps({"by": who, "task": task.id}),
                outcome=outcome,  # type: ignore[arg-type]
            )


def keep_campaign(
    folder: Path, *, n_films: int = 3, n_made: int = 5, is_known: bool = True
) -> Kept:
    """Three people over drawn clips: cho's boxes lie beside the others', and one answer is broken."""
    names = [*(f"film-{i}" for i in range(n_films)), *(f"veo-{i}" for i in range(n_made))]
    bench = lay_out(folder / "bench", names)
    tasks = tuple(task_of(bench, name, is_known=is_known) for name in names)
    said: dict[str, dict[str, object]] = {}
    for name in names:
        right = right_answer(name)
        said[name] = {"ann": right, "bob": shifted(right, 0.02), "cho": shifted(right, 0.3)}
    said.setdefault("veo-0", {})["cho"] = NOTHING
    said.setdefault("veo-1", {})["bob"] = SubmissionQuarantine(
        QuarantineReason.OUT_OF_RANGE, "frame 99 of 72"
    )
    ledger = folder / "ledger.db"
    with open_ledger(str(ledger)) as opened:
        opened.enlist(PEOPLE)
        opened.open_campaign(
            Campaign(
                name=CAMPAIGN,
                interface=AnnotationInterface.TRACE,
                benchmark=str(bench),
                guidelines="Mark each fault once.",
                interface_version="v1",
            )
        )
        opened.add_tasks(CAMPAIGN, tasks)
        opened.assign(CAMPAIGN, _in_order(tasks))
        opened.append(records_of(tasks, said))
    return Kept(bench=bench, ledger=ledger, tasks=tasks)


def _in_order(tasks: Sequence[AnnotationTask]) -> Iterator[TaskAssignment]:
    for person in PEOPLE:
        for place, task in enumerate(tasks):
            yield TaskAssignment(
                annotator=person.name,
                task=task.id,
                batch=1,
                position=place,
                arm=PrefillStudyArm.PLAIN,
            )
