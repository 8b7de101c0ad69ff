"""Ask one question: show its clips, send the request, and parse the reply.

This module needs no benchmark, table or recipe. `evaluate` uses it for its rows, `review` for
its clips, and a service for its requests.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from unreel.core.answer import Reply
from unreel.core.clip import Clip, ClipId
from unreel.core.failure import Failure
from unreel.core.question import Condition, Question
from unreel.core.verdict import Verdict
from unreel.media.reader import MediaReader
from unreel.protocols.parse_answer import read_text
from unreel.protocols.protocol import Mode, get_protocol
from unreel.reviewers.clip_input import show
from unreel.reviewers.contract import ClipInput, InputKind, ReviewRequest
from unreel.reviewers.factory import OpenReviewer

OpenFile = Callable[[str], AbstractContextManager[Path]]
"""A clip's location as a file of this machine, while the context lasts."""
FindChange = Callable[[ClipId, Path], Failure | None]
"""Whether a file still has the bytes that gave the clip its id; asked after it was shown."""


@contextmanager
def open_local_file(location: str) -> Iterator[Path]:
    """Yield the local file at `location`."""
    yield Path(location)


def _find_no_change(_clip: ClipId, _file: Path) -> Failure | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewResult:
    """Result of one question to one reviewer: the shown input and the reply."""

    reviewer: str
    question: Question
    prompt: str
    exhibits: tuple[ClipInput, ...]
    """Empty where the clips could not be shown as the condition asks."""
    box_space: str | None
    """The space of the boxes in the reply; `None` where nothing was shown."""
    outcome: Reply | Failure
    cost_usd: Decimal | None
    """`None` where tokens or price are not known: unknown is not 0."""

    @property
    def key(self) -> str:
        """Return the key of the question, as stored in a run."""
        return self.question.key(self.reviewer)

    def read(self, mode: Mode) -> Verdict | None:
        """Parse the reply; `None` without one."""
        if isinstance(self.outcome, Failure) or not self.exhibits:
            return None
        return read_text(
            self.outcome.text,
            get_protocol(self.question.instrument.protocol),
            prompt=self.question.condition.prompt,
            mode=mode,
            box_space=self.box_space,
            size=self.exhibits[0].clip.size,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentationSettings:
    """Presentation of clips, for questions and for training alike."""

    reader: MediaReader
    open_file: OpenFile = open_local_file
    """How a clip's location becomes a file."""
    find_change: FindChange = _find_no_change
    """Looks at a file again after it was shown."""

    def show(
        self, clips: Sequence[Clip], condition: Condition, wants: frozenset[InputKind]
    ) -> tuple[ClipInput, ...] | Failure:
        """Return the clips with the input kinds in `wants`, or the reason why a clip cannot be shown."""
        exhibits: list[ClipInput] = []
        for clip in clips:
            with self.open_file(clip.location) as file:
                shown = show(clip, file, reader=self.reader, condition=condition, wants=wants)
                # Who is shown nothing judges by what was surveyed.
                changed = self.find_change(clip.id, file) if wants else None
            if changed is not None:
                return changed
            if isinstance(shown, Failure):
                return shown
            exhibits.append(shown)
        return tuple(exhibits)


def lay_sheet(
    question: Question, shown: tuple[ClipInput, ...], *, key: str, prompt: str = "", name: str = ""
) -> ReviewRequest:
    """Return the request of `question` with its inputs; `prompt` and `name` as in `ReviewDispatcher.ask`."""
    text = (
        prompt or get_protocol(question.instrument.protocol).prompt(question.condition.prompt).text
    )
    return ReviewRequest(
        key=key,
        instrument=question.instrument,
        prompt=text,
        exhibits=shown,
        condition=question.condition,
        name=name,
    )


class ReviewDispatcher:
    """Dispatcher of concurrent questions: one media reader and one set of decoders for all.

    Args:
        reader: Opens clips; it must outlive the dispatcher.
        open_file: Converts a clip's location to a file.
        find_change: Checks a file again after it was used.
    """

    def __init__(
        self,
        reader: MediaReader,
        *,
        open_file: OpenFile = open_local_file,
        find_change: FindChange = _find_no_change,
    ) -> None:
        self._showing = PresentationSettings(
            reader=reader, open_file=open_file, find_change=find_change
        )
        # Decoding is work for processors, asking is waiting: only as many decode as can work.
        self._decoders = ThreadPoolExecutor(os.cpu_count(), "decoder")

    async def ask(
        self,
        question: Question,
        clips: Sequence[Clip],
        asked: OpenReviewer,
        *,
        prompt: str = "",
        name: str = "",
    ) -> ReviewResult:
        """Load `clips`, send `question`, and wait for the reply.

        `prompt` is the text for a question without a protocol, `name` the clips' name in a
        benchmark.
        """
        shown = await self.show(clips, question.condition, asked.reviewer.wants)
        return await self.put(question, shown, asked, prompt=prompt, name=name)

    async def show(
        self, clips: Sequence[Clip], condition: Condition, wants: frozenset[InputKind]
    ) -> tuple[ClipInput, ...] | Failure:
        """Return the clips with the input kinds in `wants`, or the reason why a clip cannot be shown."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._decoders, self._showing.show, clips, condition, wants
        )

    async def put(
        self,
        question: Question,
        shown: tuple[ClipInput, ...] | Failure,
        asked: OpenReviewer,
        *,
        prompt: str = "",
        name: str = "",
    ) -> ReviewResult:
        """Send `question` with the inputs `shown`; a failure of the inputs is the outcome."""
        reviewer = asked.reviewer
        exhibits = () if isinstance(shown, Failure) else shown
        sheet = lay_sheet(
            question, exhibits, key=question.key(reviewer.name), prompt=prompt, name=name
        )
        outcome: Reply | Failure
        if isinstance(shown, Failure):
            outcome, space = shown, None
        else:
            space = reviewer.box_space(shown[0])
            outcome = await reviewer.answer(sheet)
        return ReviewResult(
            reviewer=reviewer.name,
            question=question,
            prompt=sheet.prompt,
            exhibits=exhibits,
            box_space=space,
            outcome=outcome,
            cost_usd=_compute_cost_usd(outcome, asked),
        )

    def close(self) -> None:
        """Stop the decoders; the reader belongs to the caller that opened it."""
        self._decoders.shutdown(wait=True, cancel_futures=True)


def _compute_cost_usd(outcome: Reply | Failure, asked: OpenReviewer) -> Decimal | None:
    if outcome.usage is None or asked.price is None:
        return None
    return asked.price.cost_usd(outcome.usage)
