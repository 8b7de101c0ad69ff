"""Functions that an exported VLMEvalKit data set calls. They open no clip and need no PyAV."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from unreel.benchmarks.export.exported_question import (
    flatten_scorecard_metrics,
    load_export_recipe,
    parse_exported_question,
    read_exported_rows,
    score_exported_replies,
)
from unreel.core.errors import InvalidSettingError
from unreel.core.output_files import OutputDirectory
from unreel.protocols.presentation import format_question_clip_heading, split_prompt_at_clips

SCORES = "_unreel.json"
"""Suffix of the metrics file next to the predictions."""


class VlmDataset:
    """An exported VLMEvalKit data set: messages and metrics."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._recipe, self.media = load_export_recipe(folder)
        self._rows = list(read_exported_rows(folder))

    def message(self, index: int, *, whole: bool) -> list[dict[str, str]]:
        """Return the message of question `index`, with its frames at their position in the prompt.

        `whole` shows the video files instead of frames. Raise `InvalidSettingError` if frames are
        required, and the export has none.
        """
        if self._recipe.sampling is None and not whole:
            raise InvalidSettingError(
                "sampling",
                "exported without a plan, and this model takes frames",
                "Export it again with uniform-8",
            )
        row = self._rows[index]
        clips = self._files(row) if whole else self._frames(row)
        prompt = self._recipe.instrument.prompt(self._recipe.prompt).text
        before, after = (
            [{"type": "text", "value": t}] if t else [] for t in split_prompt_at_clips(prompt)
        )
        return [*before, *clips, *after]

    def evaluate(
        self, predictions: Sequence[Mapping[str, Any]], *, eval_file: Path
    ) -> dict[str, float]:
        """Compute all metrics of `predictions`, and write them next to `eval_file`.

        A missing reply counts as a failure.
        """
        predicted = {int(row["index"]): row.get("prediction") for row in predictions}
        replies = []
        for row in self._rows:
            cell = predicted.get(row["index"])
            text = "" if cell is None else str(cell)
            if isinstance(cell, float):  # VLMEvalKit turns digits into numbers
                text = "" if math.isnan(cell) else str(int(cell) if cell.is_integer() else cell)
            replies.append((parse_exported_question(row), text))
        metrics = flatten_scorecard_metrics(score_exported_replies(self._recipe, replies))
        data = (json.dumps(metrics, indent=2) + "\n").encode()
        OutputDirectory(eval_file.parent, published=True).write(eval_file.stem + SCORES, data)
        return metrics

    def _files(self, row: Mapping[str, Any]) -> Iterator[dict[str, str]]:
        paths = parse_exported_question(row).places
        for number, path in enumerate(paths, start=1):
            if len(paths) > 1:
                yield {"type": "text", "value": format_question_clip_heading(number)}
            yield {"type": "video", "value": str(self.media / path)}

    def _frames(self, row: Mapping[str, Any]) -> Iterator[dict[str, str]]:
        for part in json.loads(row["shown"]):
            if "image" in part:
                yield {"type": "image", "value": str(self._folder / part["image"])}
            else:
                yield {"type": "text", "value": part["text"]}
