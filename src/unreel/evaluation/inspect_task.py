"""Task of inspect_ai that asks the questions of unreel's protocols, with unreel's scorers.

    inspect eval unreel/review -T benchmark=PATH -T protocol=reality --model openai/...

Needs the extra `inspect`. An unreadable reply and a question without a reply are values with a
reason; the metrics come from `unreel`'s scorer over all of them, so that neither becomes a 0.
"""

import logging
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from functools import cache, partial
from pathlib import Path
from typing import Any

import anyio.to_thread
from pydantic import TypeAdapter

from unreel.benchmarks.entry import Rejected
from unreel.benchmarks.export.exported_question import (
    BenchmarkExportRecipe,
    ExportedQuestion,
    flatten_scorecard_metrics,
    parse_exported_question,
    parse_exported_reply,
    score_exported_replies,
)
from unreel.benchmarks.export.question_writer import (
    Part,
    build_question_media_parts,
    iter_exported_questions,
)
from unreel.benchmarks.loader import open_benchmark
from unreel.core.errors import InvalidValueError, MissingExtraError, UnreadableSourceError
from unreel.core.failure import Failure, FailureReason
from unreel.core.question import Marks
from unreel.core.settings import read_environment_settings
from unreel.core.verdict import Unparsed, Verdict
from unreel.media.access import open_file_sandbox
from unreel.media.reader import MediaReader, SampledFrame
from unreel.protocols.presentation import split_prompt_at_clips
from unreel.protocols.protocol import PROTOCOLS, TASKED, Mode

try:
    from inspect_ai import Task, task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import (
        ChatMessageUser,
        Content,
        ContentImage,
        ContentReasoning,
        ContentText,
        ContentVideo,
        ModelOutput,
    )
    from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
    from inspect_ai.solver import Generate, Solver, TaskState, generate, solver
except ModuleNotFoundError as error:
    raise MissingExtraError("inspect_ai", "inspect") from error

LOG = logging.getLogger(__name__)
FAILURE_KEY = "unreel:unshown"
"""Key in a sample's store for the failure, if the sample's clip could not be shown."""
_FAILURE = TypeAdapter(Failure)
_VERDICT: TypeAdapter[Verdict] = TypeAdapter(Verdict)
_RECIPE = TypeAdapter(BenchmarkExportRecipe)


@task
def review(  # noqa: PLR0913  each is a flag of `inspect eval -T`
    benchmark: str,
    *,
    protocol: str = TASKED,
    prompt: str = "paper",
    mode: Mode = "strict",
    box_space: str | None = None,
    sampling: str | None = "default",
    marks: Marks = "default",
    max_pixels: int | None = None,
    split: str | None = None,
    layout: str | None = None,
    seed: int = 0,
) -> Task:
    """Return the task that asks the questions of `protocol` about the clips of a benchmark."""
    recipe = BenchmarkExportRecipe(
        name="review",
        protocol=protocol,
        prompt=prompt,
        mode=mode,
        box_space=box_space,
        sampling=PROTOCOLS.load(protocol).sampling if sampling == "default" else sampling,
        marks=marks,
        max_pixels=max_pixels,
        split=split,
        seed=seed,
    )
    opened = open_benchmark(Path(benchmark), layout)
    samples: list[Sample] = []
    rejected: list[Rejected] = []
    instrument = recipe.instrument
    for question in iter_exported_questions(opened, recipe, reader=_open_media_reader()):
        if isinstance(question, Rejected):
            rejected.append(question)
            continue
        shared = {"recipe": asdict(recipe), "instrument": str(instrument.instrument)}
        samples.append(
            Sample(
                id=question.id,
                input=instrument.prompt(recipe.prompt).text,
                target=question.answer,
                metadata=shared | {"item": asdict(question)},
            )
        )
    if rejected:
        LOG.warning("%d rows cannot be used, first: %s", len(rejected), rejected[0])
    if not samples:
        raise UnreadableSourceError(
            str(opened.root),
            f"no question for {recipe.protocol} ({len(rejected)} rows rejected)",
            "Check the protocol and the split",
        )
    return Task(
        dataset=MemoryDataset(samples, name=opened.root.name),
        solver=[show_clips(str(opened.root.resolve())), generate()],
        scorer=verdict(),
        # A failed sample must not stop the others; it is scored as a failure.
        fail_on_error=False,
        score_on_error=True,
        version=recipe.instrument.instrument.version,
        metadata={"recipe": asdict(recipe), "instrument": str(recipe.instrument.instrument)},
    )


@solver
def show_clips(media: str) -> Solver:
    """Return the solver that inserts the frames or the file of each sample's clip into its prompt."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001  inspect's shape
        recipe, item = _parse_sample_metadata(state.metadata)
        reader = _open_media_reader()
        load = partial(build_question_media_parts, recipe, item, media=Path(media), reader=reader)
        parts = await anyio.to_thread.run_sync(load)
        if isinstance(parts, Failure):
            state.store.set(FAILURE_KEY, _FAILURE.dump_python(parts, mode="json"))
            state.completed = True
            return state
        before, after = split_prompt_at_clips(state.input_text)
        content = [_build_message_content(part) for part in (before, *parts, after) if part]
        state.messages = [ChatMessageUser(content=content)]
        return state

    return solve


@metric(scores="unreduced")
def scorecard() -> Metric:
    """Return the metric of all scorecard values: intervals, n, coverage, failures, unparsed answers."""

    def figures(scores: list[SampleScore]) -> Value:
        epochs: list[list[SampleScore]] = []
        counts: Counter[str] = Counter()
        for score in scores:
            n = counts[str(score.sample_id)]
            counts[str(score.sample_id)] += 1
            if n == len(epochs):
                epochs.append([])
            epochs[n].append(score)
        listed = [_compute_scorecard_values(epoch) for epoch in epochs]
        if len(listed) == 1:
            return listed[0]
        # Answers of several epochs are not independent, so each epoch is scored separately.
        return {f"epoch {i}: {k}": v for i, row in enumerate(listed, 1) for k, v in row.items()}

    return figures


@scorer(metrics=[scorecard()])
def verdict() -> Scorer:
    """Return the scorer that parses each reply into a verdict, and records missing or invalid replies."""

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001  the truth is in the metadata
        recipe, item = _parse_sample_metadata(state.metadata)
        text = _parse_model_output(state.output)
        outcome: Verdict | Failure
        if stored_failure := state.store.get(FAILURE_KEY):
            outcome = _FAILURE.validate_python(stored_failure)
        elif isinstance(text, Failure):
            outcome = text
        else:
            outcome = parse_exported_reply(recipe, item, text)
        if isinstance(outcome, Failure):
            return Score(
                value={"answered": False, "read": False},
                explanation=str(outcome),
                reason=outcome.reason.value,
                metadata={"failure": _FAILURE.dump_python(outcome, mode="json")},
            )
        answer = getattr(outcome, fields(outcome)[0].name)
        read = not isinstance(answer, Unparsed)
        return Score(
            value={"answered": True, "read": read},
            answer=str(answer) if read else None,
            explanation=None if read else f"{answer.reason.value}: {answer.found}",
            reason=None if read else "invalid_response_format",
            metadata={"reply": text, "verdict": _VERDICT.dump_python(outcome, mode="json")},
        )

    return score


@cache
def _open_media_reader() -> MediaReader:
    return MediaReader(open_file_sandbox(read_environment_settings()))


def _parse_sample_metadata(
    metadata: Mapping[str, Any],
) -> tuple[BenchmarkExportRecipe, ExportedQuestion]:
    recipe = _RECIPE.validate_python(metadata["recipe"])
    current = str(recipe.instrument.instrument)
    if metadata["instrument"] != current:
        raise InvalidValueError(
            f"answers to {metadata['instrument']}, but this release reads {current}. Run it again"
        )
    return recipe, parse_exported_question(metadata["item"])


def _build_message_content(part: Part) -> Content:
    match part:
        case str():
            return ContentText(text=part)
        case Path():
            return ContentVideo(video=str(part), format="mov" if part.suffix == ".mov" else "mp4")
        case SampledFrame():
            return ContentImage(image=f"data:image/jpeg;base64,{b64encode(part.data).decode()}")


def _parse_model_output(output: ModelOutput) -> str | Failure:
    if output.error:
        return Failure(FailureReason.SERVER_ERROR, output.error)
    if output.empty:
        return Failure(FailureReason.SERVER_ERROR, "no output; see the sample's error")
    if output.stop_reason == "content_filter":
        return Failure(FailureReason.REFUSED, "the provider's filter withheld the reply")
    content = output.message.content
    if isinstance(content, str):
        return content
    # inspect_ai separates reasoning from the text, but `realism` needs the reasons inside it.
    return "".join(
        f"<think>{part.reasoning}</think>" if isinstance(part, ContentReasoning) else part.text
        for part in content
        if isinstance(part, ContentReasoning | ContentText)
    )


def _compute_scorecard_values(scores: Sequence[SampleScore]) -> dict[str, float]:
    if not scores:
        return {}
    recipe, _ = _parse_sample_metadata(scores[0].sample_metadata or {})
    replies: list[tuple[ExportedQuestion, str | Failure]] = []
    for sample in scores:
        _, question = _parse_sample_metadata(sample.sample_metadata or {})
        stored = sample.score.metadata or {}
        failure = stored.get("failure")
        reply = str(stored["reply"]) if failure is None else _FAILURE.validate_python(failure)
        replies.append((question, reply))
    return flatten_scorecard_metrics(score_exported_replies(recipe, replies))
