"""Reviewers that are ready to be asked: described by a name that workers can open, and kept open."""

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from unreel.reviewers.contract import Reviewer
from unreel.reviewers.endpoint.budget import Price


@dataclass(frozen=True, slots=True)
class OpenReviewer:
    """A reviewer that can be asked now, and what its tokens cost."""

    reviewer: Reviewer
    price: Price | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Opener:
    """Who will answer: the stable name, what makes the reviewer, and what its tokens cost."""

    name: str
    build: Callable[[], Reviewer]
    """It must pickle: workers call it."""
    price: Price | None = None

    def open(self) -> OpenReviewer:
        """The reviewer, in the event loop that asks it; whoever opens it closes it."""
        return OpenReviewer(self.build(), self.price)


class ReviewerPool:
    """Reviewers kept open for as long as somebody may ask them: each name is opened once."""

    def __init__(self) -> None:
        self._open: dict[str, OpenReviewer] = {}

    def open(self, opener: Opener) -> OpenReviewer:
        """The open reviewer of that name."""
        if opener.name not in self._open:
            self._open[opener.name] = opener.open()
        return self._open[opener.name]

    async def close(self) -> None:
        """Close them all; the pool can be used again."""
        while self._open:
            _, held = self._open.popitem()
            await held.reviewer.close()

    async def __aenter__(self) -> "ReviewerPool":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
