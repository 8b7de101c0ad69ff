"""Sample review without a model: a synthetic clip with a planted fault, and recorded answers.

The answers were written by hand for this clip; no model was queried. They show the form of a
review, not the quality of a model.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter

from unreel.core.answer import Reply
from unreel.core.failure import Failure, FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.core.trace import Trace
from unreel.reviewers.contract import ClipInput, InputKind, ReviewRequest
from unreel.reviewers.factory import ReviewerFactory

NOTE = (
    "A sample: unreel drew the clip with one planted fault, and the answers are recorded. They were "
    "written by hand; no model was queried."
)
FILE = "sample.mp4"
_TRACES = TypeAdapter(tuple[Trace, ...])

_ANSWERS: Mapping[str, Mapping[str, str]] = {
    "recorded:attentive": {
        "trace": (
            "FAKE\n<coordinates>[308, 272, 384, 346]</coordinates>\n<start_time>3.0</start_time>\n"
            "<explanation>The front wheel of the red car comes off and floats up beside it, while the "
            "car drives on as if nothing had happened.</explanation>"
        ),
        "realism": (
            "<think>Problem Description: A wheel leaves the red car and rises into the air; the car "
            "neither sinks nor slows down.\nStandard Adherence: A significant error that occupies the "
            "second half of the video.</think>\n<answer>2</answer>"
        ),
        "reality": "<think>The wheel floats.</think>\n<answer>0</answer>",
    },
    "recorded:hasty": {
        "trace": "REAL",
        "realism": (
            "<think>Problem Description: The light on the cars is a little flat.\nStandard Adherence: "
            "Only one minor error; the street is natural.</think>\n<answer>4</answer>"
        ),
        "reality": "<answer>1</answer>",
    },
}


@dataclass(frozen=True, slots=True)
class SampleReviewer:
    """Reviewer that returns the recorded answers of the sample review, by protocol."""

    name: str
    texts: Mapping[str, str] = field(repr=False)

    @property
    def wants(self) -> frozenset[InputKind]:
        return frozenset({InputKind.FRAMES})

    def box_space(self, clip_input: ClipInput) -> str:  # noqa: ARG002  written for this clip alone
        return "pixel"

    async def answer(self, request: ReviewRequest) -> Reply | Failure:
        text = self.texts.get(request.instrument.protocol)
        if text is None:
            detail = f"the sample has no answer to {request.instrument}"
            return Failure(FailureReason.NOT_RECORDED, detail)
        return Reply(text=text)

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


def build_sample_reviewers() -> tuple[ReviewerFactory, ...]:
    """Return the factories of the sample's two reviewers: only one detects the planted fault."""
    return tuple(
        ReviewerFactory(name=name, build=partial(SampleReviewer, name, texts))
        for name, texts in _ANSWERS.items()
    )


def write_sample_clip(folder: Path) -> Path:
    """Write the clip of the sample review, which ships with the package, into `folder`."""
    return OutputDirectory(folder).write(FILE, Path(__file__).with_name(FILE).read_bytes())


def read_sample_traces() -> tuple[Trace, ...]:
    """Return the trace of the fault that was planted in the sample clip."""
    return _TRACES.validate_json(Path(__file__).with_name("sample.json").read_bytes())
