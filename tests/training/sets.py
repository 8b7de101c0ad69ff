"""Small benchmarks of drawn clips to train on."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from footage import film, write_clip
from unreel.benchmarks.entry import Entry
from unreel.benchmarks.table_entries import convert_entry_to_record
from unreel.core.box import Box
from unreel.core.clip import Generated, Real
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Trace
from unreel.training.recipe import TrainRecipe, validate_train_recipe

MELTS = Trace(
    span=TimeSpan(125_000, 250_000),
    track=(BoxAt(125_000, Box(0.25, 0.25, 0.5, 0.75)),),
    explanation="The ball melts.",
)


@cache
def clip(seed: int, *, crf: int = 23) -> bytes:
    """A quarter of a second; another `crf` shows the same in other bytes."""
    return write_clip(film(seed, n_frames=6, width=96, height=64), rate=24, crf=crf)


def real(name: str, **told: Any) -> Entry:
    return Entry(**({"name": name, "location": f"{name}.mp4", "origin": Real()} | told))


def fake(name: str, **told: Any) -> Entry:
    made = Generated("Sora")
    return replace(real(name, **told), origin=made, traces=told.get("traces", (MELTS,)))


def write_set(root: Path, entries: Mapping[Entry, bytes] | Iterable[tuple[Entry, bytes]]) -> Path:
    """A video folder of `entries`, each with the bytes of its file."""
    root.mkdir(parents=True, exist_ok=True)
    pairs = entries.items() if isinstance(entries, Mapping) else entries
    lines = []
    for entry, data in pairs:
        (root / entry.location).write_bytes(data)
        lines.append(json.dumps(convert_entry_to_record(entry, file_name=entry.location)))
    (root / "metadata.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return root


def recipe(benchmark: Path | str | None, **changes: Any) -> TrainRecipe:
    """A recipe that trains `trace` on that benchmark; `changes` replace its sections."""
    data = {
        "benchmark": None if benchmark is None else str(benchmark),
        "protocol": "trace",
        "condition": {"sampling": "uniform-4", "prompt": "fine-tuning"},
    }
    values: dict[str, Any] = {
        "name": "tiny",
        "model": {"name": "tiny", "family": "qwen2.5-vl"},
        "data": [data],
        "holdout": {"near_duplicates": False, "share": 0.25},
    }
    return validate_train_recipe(values | changes)
