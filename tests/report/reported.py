"""Runs to report on: small ones that were really asked, and large ones whose rows are written at once."""

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from synthesise import ClipRecipe, synthesise
from unreel.core.clip import ClipFacts, VideoFacts
from unreel.core.content_ids import digest
from unreel.core.question import Condition, Question
from unreel.core.settings import read_environment_settings
from unreel.engine.clip_facts import FACTS
from unreel.engine.location import StorageLocation
from unreel.engine.storage_access import ClipAccessSettings, compute_file_identity
from unreel.engine.table import LanceTable
from unreel.engine.table_writer import TableWriter
from unreel.engine.writer_lock import build_writer_lock
from unreel.evaluation.recipe import validate_eval_recipe
from unreel.evaluation.run_job import EvalRun, evaluate
from unreel.evaluation.stored_recipe import RECIPE_FILE
from unreel.protocols.protocol import get_protocol

BOX = {"x0": 0.25, "y0": 0.25, "x1": 0.5, "y1": 0.75}
START_US = 500_000
SIZE = (192, 128)
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


def trace(*categories: str, explanation: str = "The ball has no shadow.") -> dict[str, Any]:
    """A fault from half a second on, in the middle of the left half."""
    return {
        "span": {"start_us": START_US, "end_us": 900_000},
        "track": [{"at_us": START_US, "box": BOX}],
        "categories": list(categories),
        "explanation": explanation,
    }


def entry(name: str, creator: str = "", **more: Any) -> dict[str, Any]:
    """A row of a benchmark; without a creator it is real."""
    label = "generated" if creator else "real"
    return {"file_name": f"{name}.mp4", "name": name, "label": label, "creator": creator, **more}


def lay_out(root: Path, entries: Sequence[Mapping[str, Any]]) -> Path:
    """A video folder of synthesised clips of one second."""
    root.mkdir()
    for number, row in enumerate(entries):
        clip = synthesise(ClipRecipe(n_frames=24, seed=number))
        (root / row["file_name"]).write_bytes(clip)
    write_rows(root, entries)
    return root


def write_rows(root: Path, entries: Sequence[Mapping[str, Any]]) -> None:
    """The table of a video folder."""
    (root / "metadata.jsonl").write_text("\n".join(map(json.dumps, entries)), encoding="utf-8")


def record(path: Path, answers: Mapping[str, str | Mapping[str, Any]]) -> Path:
    """A file for the model `recorded`: texts or whole lines, by file name."""
    lines = [
        {"clip": f"{name}.mp4", **({"text": said} if isinstance(said, str) else said)}
        for name, said in answers.items()
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def ask(folder: Path, bench: Path, **settings: Any) -> EvalRun:
    """A run that was really asked, kept in `folder`."""
    run = _run(folder, {"benchmark": str(bench), **settings})
    evaluate(run)
    return run


def accuse(*, box: str = "[48, 32, 96, 96]", start: str = "0.5", why: str = "No shadow.") -> str:
    """An answer of `trace`; the box is the true one of `trace()`, in pixels."""
    return (
        f"FAKE <coordinates>{box}</coordinates> <start_time>{start}</start_time> "
        f"<explanation>{why}</explanation>"
    )


def write_large_run(folder: Path, *, n_answers: int) -> EvalRun:
    """A run of `trace` about `n_answers` clips that nobody has: its rows go straight into its tables."""
    bench = folder / "bench"
    bench.mkdir(parents=True)
    creators = [f"creator {i}" for i in range(8)]
    kinds = ["object-distortion", "sudden-blurring", "object-merging", "unexpected-move"]
    rows = [
        entry(f"clip-{i:06d}")
        if i % 2
        else entry(f"clip-{i:06d}", creators[i % 8], traces=[trace(kinds[i % 3])])
        for i in range(n_answers)
    ]
    write_rows(bench, rows)
    run = _run(folder / "run", {"benchmark": str(bench), "protocol": "trace", "model": "recorded"})
    (folder / "run").mkdir()
    reviewer = "recorded:large"
    document = {
        "reviewer": reviewer,
        "instrument": str(run.scope.instrument),
        "recipe": run.recipe.model_dump(mode="json"),
    }
    (folder / "run" / RECIPE_FILE).write_text(json.dumps(document), encoding="utf-8")
    facts = FACTS.dump_json(_facts()).decode()
    clips, answers = [], []
    for i, row in enumerate(rows):
        location, clip = str(bench / row["file_name"]), digest("clip", row["name"])
        clips.append(
            {
                "key": compute_file_identity(location),
                "name": row["name"],
                "location": location,
                "clip": clip,
                "facts": facts,
            }
        )
        answers.append(_large_answer(clip, reviewer, run.scope.conditions[0], number=i))
    _append(run.clips, clips)
    _append(run.answers, answers)
    return run


def _large_answer(clip: str, reviewer: str, condition: Condition, *, number: int) -> dict[str, Any]:
    instrument = get_protocol("trace").instrument
    question = Question(subject=clip, instrument=instrument, condition=condition)  # type: ignore[arg-type]
    row: dict[str, Any] = {
        "key": question.key(reviewer),
        "reviewer": reviewer,
        "clip": clip,
        "protocol": "trace",
        "protocol_version": instrument.version,
        "condition": str(condition),
        "notes": json.dumps({"box_space": "pixel", "frames": [[]]}),
    }
    if number % 50 == 7:
        return row | {"failure_reason": "rate-limited", "failure_detail": f"try {number}"}
    left = number * 7 % 90
    why = " ".join(f"part {number * step % 997} bends" for step in range(1, 30))
    text = accuse(box=f"[{left}, 20, {left + 60}, 90]", start=f"{number % 9 / 10}", why=why)
    said = "REAL" if number % 3 == 1 else text
    cost = {"latency_us": 900_000 + number, "input_tokens": 2000, "output_tokens": 90}
    return row | {"text": said, "cost_usd": 0.001, **cost}


def _facts() -> ClipFacts:
    video = VideoFacts(
        codec="h264",
        pixel_format="yuv420p",
        width=SIZE[0],
        height=SIZE[1],
        rotation_deg=0,
        n_frames=24,
        average_rate=Fraction(24),
        variable_rate=False,
        first_at_s=Fraction(0),
        duration_s=Fraction(1),
    )
    return ClipFacts(container="mp4", size_bytes=1000, video=video)


def _append(table: LanceTable, rows: Sequence[dict[str, Any]]) -> None:
    with build_writer_lock(table.place) as lock:
        TableWriter(table, lock=lock, observe=lambda _step, _rows: None).append(rows)


def _run(folder: Path, settings: Mapping[str, Any]) -> EvalRun:
    values = (
        {"recorded": "large.jsonl", **settings} if settings["model"] == "recorded" else settings
    )
    access = ClipAccessSettings(settings=read_environment_settings(), trusted=True)
    return EvalRun(
        place=StorageLocation(str(folder)),
        recipe=validate_eval_recipe(dict(values)),
        access=access,
        ledgers=folder,
    )
