"""The stage that shows a clip to a reviewer and keeps what comes back."""

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any, Final

from pydantic import TypeAdapter

from unreel.core.answer import Reply
from unreel.core.clip import Clip
from unreel.core.failure import Failure
from unreel.core.question import Condition
from unreel.engine.access import Access, find_change, local_copy
from unreel.engine.stage import Resources, Row, Stage, failed
from unreel.evaluate.questions import Planned, shown_ids
from unreel.evaluate.survey import FACTS
from unreel.media.access import media_reader
from unreel.protocols.protocol import protocol
from unreel.reviewers.contract import Exhibit, Reviewer, Sheet
from unreel.reviewers.endpoint.budget import Price
from unreel.reviewers.showing import show

_CONDITION: Final = TypeAdapter(Condition)


def answer_row(planned: Planned, reviewer: str) -> Row:
    """The row of a question before it is asked; what begins with `_` is for the way only."""
    question = planned.question
    first, *second = shown_ids(question)
    return {
        "key": question.key(reviewer),
        "reviewer": reviewer,
        "clip": first,
        "second": second[0] if second else None,
        "protocol": question.instrument.protocol,
        "protocol_version": question.instrument.version,
        "condition": str(question.condition),
        "_condition": json.dumps(asdict(question.condition)),
        "_locations": [clip.location for clip in planned.clips],
        "_facts": [FACTS.dump_json(clip.facts).decode() for clip in planned.clips],
    }


def add_costs(rows: Sequence[Row], totals: dict[str, float]) -> None:
    """Add what answers cost to the total; rows that do not tell add nothing."""
    for row in rows:
        if row.get("cost_usd") is not None:
            totals["cost_usd"] = totals.get("cost_usd", 0.0) + row["cost_usd"]


class ReviewStage(Stage):
    """Decodes a question's clips, asks the reviewer, and writes down the answer and what was shown.

    Args:
        build: makes the reviewer, once in each worker; it must pickle.
        access: how clips are opened.
        in_flight: questions that are with the reviewer at once.
        price: what its tokens cost, for the cost of each answer.
    """

    def __init__(
        self,
        build: Callable[[], Reviewer],
        access: Access,
        *,
        in_flight: int,
        price: Price | None = None,
    ) -> None:
        self.resources = Resources(in_flight=in_flight)
        self._build, self._access, self._price = build, access, price

    def __getstate__(self) -> dict[str, Any]:
        kept = ("resources", "_build", "_access", "_price")
        return {name: getattr(self, name) for name in kept}

    def setup(self) -> None:
        access = self._access
        self._open = ExitStack()
        self._reader = self._open.enter_context(
            media_reader(access.settings, trusted=access.trusted)
        )
        # Decoding is work for processors, asking is waiting: only as many decode as can work.
        self._decoders = self._open.enter_context(ThreadPoolExecutor(os.cpu_count()))
        self._reviewer = self._build()

    async def __call__(self, row: Row) -> Row:
        condition = _CONDITION.validate_json(row["_condition"])
        loop = asyncio.get_running_loop()
        shown = await loop.run_in_executor(self._decoders, self._show, row, condition)
        if isinstance(shown, Failure):
            return failed(row, shown)
        instrument = protocol(row["protocol"])
        sheet = Sheet(
            key=row["key"],
            instrument=instrument.instrument,
            prompt=instrument.prompt(condition.prompt).text,
            exhibits=shown,
            condition=condition,
        )
        outcome = await self._reviewer.answer(sheet)
        noted = row | {"notes": json.dumps(self._notes(shown))}
        if isinstance(outcome, Failure):
            return failed(noted, outcome)
        return noted | self._answered(outcome)

    async def close(self) -> None:
        await self._reviewer.close()
        self._open.close()

    def _show(self, row: Row, condition: Condition) -> tuple[Exhibit, ...] | Failure:
        wants = self._reviewer.wants
        exhibits: list[Exhibit] = []
        for clip in _clips(row):
            with local_copy(clip.location, self._access) as file:
                shown = show(
                    clip,
                    file,
                    reader=self._reader,
                    condition=condition,
                    wants=wants,
                )
                # Who is shown nothing judges by what was surveyed.
                changed = find_change(clip.id, file) if wants else None
            if changed is not None:
                return changed
            if isinstance(shown, Failure):
                return shown
            exhibits.append(shown)
        return tuple(exhibits)

    def _notes(self, exhibits: tuple[Exhibit, ...]) -> dict[str, Any]:
        return {
            "box_space": self._reviewer.box_space(exhibits[0]),
            "frames": [
                [[frame.index, str(frame.at_s)] for frame in exhibit.frames] for exhibit in exhibits
            ],
        }

    def _answered(self, reply: Reply) -> Row:
        usage = reply.usage
        cost = None if usage is None or self._price is None else self._price.cost_usd(usage)
        return {
            "text": reply.text,
            "latency_us": reply.latency_us,
            "input_tokens": None if usage is None else usage.input_tokens,
            "output_tokens": None if usage is None else usage.output_tokens,
            "cost_usd": None if cost is None else float(cost),
        }


def _clips(row: Row) -> Iterator[Clip]:
    ids = [row["clip"]] if row["second"] is None else [row["clip"], row["second"]]
    for clip, location, facts in zip(ids, row["_locations"], row["_facts"], strict=True):
        yield Clip(id=clip, location=location, facts=FACTS.validate_json(facts))
