"""Answers in the styles of current models, each with what a person reads in it, and what our parsers read.

A line of a set is a JSON object: `get_protocol`, `text`, `follows_the_form`, and a key for each part; `null` means that the
text holds no such thing, or not unambiguously.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unreel.core.verdict import Unparsed
from unreel.protocols.box_space import parse_box_space
from unreel.protocols.protocol import AnswerContext, Mode, get_protocol

HALF_A_PIXEL = 0.5
"""Two people who round differently have read the same box."""


@dataclass(frozen=True)
class Part:
    """One thing that an answer says or does not say, and what was read."""

    protocol: str
    text: str
    name: str
    true: object
    read: object
    due: bool
    """Whether it has to be read: all of it by `lenient`, by `strict` what follows the form."""

    @property
    def is_wrong(self) -> bool:
        return self.read is not None and not _agree(self.read, self.true)

    @property
    def can_be_needless(self) -> bool:
        return self.due and self.true is not None

    @property
    def is_needless(self) -> bool:
        return self.can_be_needless and self.read is None


def read_all(file: Path, mode: Mode) -> list[Part]:
    rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return [part for row in rows for part in _parts(row, mode)]


def _agree(read: object, true: object) -> bool:
    if isinstance(read, Sequence) and isinstance(true, Sequence) and not isinstance(read, str):
        return all(abs(one - other) <= HALF_A_PIXEL for one, other in zip(read, true, strict=True))
    return read == true


def _parts(row: dict[str, Any], mode: Mode) -> Iterator[Part]:
    space = None
    if "space" in row:
        width, height = row["frame"]
        space = parse_box_space(row["space"], width=width, height=height)
    reading = AnswerContext(mode=mode, prompt=row.get("prompt", "paper"), space=space)
    verdict = get_protocol(row["protocol"]).parse(row["text"], reading)
    due = mode == "lenient" or row["follows_the_form"]
    for name, read in _readings(row["protocol"], verdict, row.get("frame", (0, 0))):
        yield Part(row["protocol"], row["text"], name, row[name], read, due)


def _readings(
    instrument: str, verdict: Any, frame: tuple[int, int]
) -> Iterator[tuple[str, object]]:
    match instrument:
        case "trace":
            box, start_us = verdict.box, verdict.start_us
            yield "label", _plain(verdict.label)
            yield "box_px", None if isinstance(box, Unparsed) else _pixels(box, frame)
            yield "start_s", None if isinstance(start_us, Unparsed) else start_us / 1_000_000
        case "realism":
            yield "score", _plain(verdict.score)
        case "reality":
            yield "label", _plain(verdict.label)
        case _:
            yield "real", _plain(verdict.real)


def _plain(read: Any) -> object:
    return None if isinstance(read, Unparsed) else getattr(read, "value", read)


def _pixels(box: Any, frame: tuple[int, int]) -> list[float]:
    width, height = frame
    return [box.x0 * width, box.y0 * height, box.x1 * width, box.y1 * height]
