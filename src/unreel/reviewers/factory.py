"""Factories and pool of reviewers: a worker opens each reviewer once and reuses it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial

from unreel.core.answer import Reply
from unreel.core.errors import raise_if_machine_error
from unreel.core.failure import Failure, FailureReason
from unreel.reviewers.contract import ClipInput, InputKind, Reviewer, ReviewRequest
from unreel.reviewers.endpoint.budget import EarlierSpending, TokenPrice


@dataclass(frozen=True, slots=True)
class ReviewerWithPrices:
    """An open reviewer, and the price of its tokens if it is known."""

    reviewer: Reviewer
    price: TokenPrice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerFactory:
    """Factory of a reviewer: stable name, constructor and token price."""

    name: str
    build: Callable[..., Reviewer]
    """Picklable constructor, which workers call; with a cost limit it accepts `before`, an `EarlierSpending`."""
    price: TokenPrice | None = None
    gpus: float = 0.0
    """Number of GPUs that each worker with this reviewer reserves on a cluster."""
    is_metered: bool = False
    """Whether the reviewer counts its requests or cost towards a limit; a second instance would have its own limit."""
    max_cost_usd: Decimal | None = None

    def after(self, before: EarlierSpending) -> "ReviewerFactory":
        """Return the factory with the cost `before` counted towards its limit; itself without a limit."""
        if self.max_cost_usd is None:
            return self
        return replace(self, build=partial(self.build, before=before))

    def open(self) -> ReviewerWithPrices:
        """Open the reviewer in the event loop of the caller, which must close it."""
        return ReviewerWithPrices(self.build(), self.price)


@dataclass(frozen=True, slots=True)
class _BorrowedReviewer:
    """Wrapper of a reviewer that another object owns and closes; its own `close` does nothing."""

    reviewer: Reviewer

    @property
    def name(self) -> str:
        return self.reviewer.name

    @property
    def wants(self) -> frozenset[InputKind]:
        return self.reviewer.wants

    def box_space(self, clip_input: ClipInput) -> str:
        return self.reviewer.box_space(clip_input)

    async def answer(self, request: ReviewRequest) -> Reply | Failure:
        try:
            answered: object = await self.reviewer.answer(request)
        except Exception as error:  # noqa: BLE001  somebody's mistake costs one answer
            raise_if_machine_error(error)
            return Failure(FailureReason.STAGE_FAILED, f"{type(error).__name__}: {error}")
        if not isinstance(answered, Reply | Failure):
            detail = f"answer returned {type(answered).__name__}, and not a Reply or a Failure"
            return Failure(FailureReason.MALFORMED_REPLY, detail)
        return answered

    async def close(self) -> None:
        """Do nothing: the owner of the reviewer closes it."""


def wrap_open_reviewer(reviewer: Reviewer) -> ReviewerFactory:
    """Return a factory that always gives the open `reviewer`, which its owner must close."""
    return ReviewerFactory(name=reviewer.name, build=partial(_BorrowedReviewer, reviewer))


class ReviewerPool:
    """Pool of open reviewers, one for each name."""

    def __init__(self) -> None:
        self._open: dict[str, ReviewerWithPrices] = {}

    def open(self, factory: ReviewerFactory) -> ReviewerWithPrices:
        """Return the reviewer of `factory`; open it on first use."""
        if factory.name not in self._open:
            self._open[factory.name] = factory.open()
        return self._open[factory.name]

    async def close(self) -> None:
        """Close all reviewers of the pool. The pool can be used again."""
        while self._open:
            _, priced = self._open.popitem()
            await priced.reviewer.close()

    async def __aenter__(self) -> "ReviewerPool":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
