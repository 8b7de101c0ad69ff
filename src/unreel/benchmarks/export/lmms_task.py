"""Functions that an exported lmms-eval task calls. They open no clip and need no PyAV."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from PIL import Image

from unreel.benchmarks.export.exported_question import (
    flatten_scorecard_metrics,
    list_exported_task_metrics,
    load_export_recipe,
    parse_exported_question,
    read_exported_rows,
    score_exported_replies,
)
from unreel.protocols.presentation import split_prompt_at_clips


class LmmsTask:
    """An exported lmms-eval task: questions, messages and metrics."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._recipe, self._media = load_export_recipe(folder)
        self._items = {
            row["id"]: parse_exported_question(row) for row in read_exported_rows(folder)
        }
        self._scored: tuple[list[dict[str, str]], dict[str, float]] | None = None
        self._around = split_prompt_at_clips(
            self._recipe.instrument.prompt(self._recipe.prompt).text
        )
        self.prompt = "".join(self._around)

    def visuals(self, doc: Mapping[str, Any]) -> list[Any]:
        """Return the frames or file paths, for models that take them separately from the text."""
        return [part["url"] for part in self._content(doc) if "url" in part]

    def messages(self, doc: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Build one user message: prompt with frames or files in place, each after its label if it has one."""
        before, after = ([{"type": "text", "text": t}] if t else [] for t in self._around)
        return [{"role": "user", "content": [*before, *self._content(doc), *after]}]

    def results(self, doc: Mapping[str, Any], results: Sequence[Any]) -> dict[str, Any]:
        """Return the reply once for each metric, because metrics are computed from all replies together."""
        text = results[0] if results and isinstance(results[0], str) else ""
        reply = {"id": str(doc["id"]), "reply": text}
        return {metric: reply for metric, _ in list_exported_task_metrics(self._recipe.protocol)}

    def figure(self, name: str, results: Sequence[Mapping[str, str]]) -> float | None:
        """Compute the metric `name` over all replies; `None`, shown as N/A, if it was not measured."""
        answers = [dict(result) for result in results]
        if self._scored is None or self._scored[0] != answers:
            replies = [(self._items[answer["id"]], answer["reply"]) for answer in answers]
            metrics = flatten_scorecard_metrics(score_exported_replies(self._recipe, replies))
            self._scored = (answers, metrics)
        return self._scored[1].get(name)

    def _content(self, doc: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        for part in json.loads(doc["shown"]):
            if "image" in part:
                with Image.open(self._folder / part["image"]) as picture:
                    yield {"type": "image", "url": picture.convert("RGB")}
            elif "video" in part:
                yield {"type": "video", "url": str(self._media / part["video"])}
            else:
                yield {"type": "text", "text": part["text"]}


@cache
def open_task(folder: str) -> LmmsTask:
    """Return the task in `folder`, cached per process: lmms-eval reloads its module for every function."""
    return LmmsTask(Path(folder))
