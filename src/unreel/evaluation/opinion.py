"""Opinion of one reviewer about one clip: the question, and the parsed reply."""

from dataclasses import dataclass
from typing import Any

from unreel.core.failure import Failure, FailureReason
from unreel.core.safe_text import sanitise_line
from unreel.core.verdict import Unparsed, Verdict
from unreel.protocols.protocol import Mode, get_protocol
from unreel.protocols.text import is_refusal
from unreel.protocols.verdict_text import ProtocolTexts
from unreel.reviewers.ask import ReviewResult
from unreel.reviewers.contract import ClipInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion(ReviewResult):
    """One question to one reviewer: the input, the reply, and the parsed verdict."""

    verdict: Verdict | None
    """What the text says; `None` without a text."""

    @property
    def exhibit(self) -> ClipInput | None:
        """Return the clip as shown to the reviewer; `None` if the condition could not be met."""
        return self.exhibits[0] if self.exhibits else None

    @property
    def is_readable(self) -> bool:
        """Return whether the answer gives a label or a score; otherwise there is no verdict."""
        return self.verdict is not None and not isinstance(self.decision, Unparsed)

    @property
    def wording(self) -> ProtocolTexts[Any, Any]:
        """Return the texts of the opinion's protocol."""
        return get_protocol(self.question.instrument.protocol).wording

    @property
    def decision(self) -> Any:
        """Return the protocol's main answer as far as it was parsed; `None` without a text."""
        return None if self.verdict is None else self.wording.decision(self.verdict)

    @property
    def is_refusal(self) -> bool:
        """Return whether the reviewer refused to answer: as its server reports, or in its text."""
        if isinstance(self.outcome, Failure):
            return self.outcome.reason is FailureReason.REFUSED
        return not self.is_readable and is_refusal(self.outcome.text)

    @property
    def headline(self) -> str:
        """Return the verdict in one or two words, or a text for a refusal or a missing answer."""
        if self.is_refusal:
            return "refused to answer"
        return "no answer" if self.verdict is None else self.wording.headline(self.verdict)

    @property
    def problem(self) -> str | None:
        """Return the reason for a missing verdict; `None` if there is one."""
        if isinstance(self.outcome, Failure):
            return sanitise_line(str(self.outcome))
        if self.verdict is None or self.is_readable:
            return None
        if self.is_refusal:
            return "it refused to answer; its text is shown as it came"
        part = self.decision
        why = part.reason.value if isinstance(part, Unparsed) else ""
        return (
            f"the answer could not be read: its {self.wording.decides} is {why}; "
            "its text is shown as it came"
        )

    @property
    def details(self) -> tuple[tuple[str, str], ...]:
        """Return the other contents of a readable answer besides label or score; missing parts are named."""
        if self.verdict is None or not self.is_readable:
            return ()
        return tuple(self.wording.details(self.verdict))

    def __str__(self) -> str:
        told = [f"{name}: {text}" for name, text in self.details]
        head = f"{sanitise_line(self.reviewer)}, {self.question.instrument}: {self.headline}"
        return "\n".join([head, *(f"  {line}" for line in filter(None, [*told, self.problem]))])


def build_opinion(asked: ReviewResult, mode: Mode) -> Opinion:
    """Return `asked` with the verdict parsed from its reply."""
    return Opinion(
        reviewer=asked.reviewer,
        question=asked.question,
        prompt=asked.prompt,
        exhibits=asked.exhibits,
        box_space=asked.box_space,
        outcome=asked.outcome,
        cost_usd=asked.cost_usd,
        verdict=asked.read(mode),
    )
