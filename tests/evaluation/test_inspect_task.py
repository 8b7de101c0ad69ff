import base64
import gc
import io
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

pytest.importorskip("inspect_ai", reason="inspect_ai is absent: it comes with the extra `inspect`")

from inspect_ai import eval as run_eval
from inspect_ai.log import EvalLog, EvalSample, resolve_sample_attachments
from inspect_ai.model import (
    ContentImage,
    ContentReasoning,
    ContentText,
    Model,
    ModelOutput,
    ModelUsage,
    get_model,
)

from synthesise import ClipRecipe, synthesise
from unreel.benchmarks.export.exported_question import (
    BenchmarkExportRecipe,
    ExportedQuestion,
    flatten_scorecard_metrics,
    score_exported_replies,
)
from unreel.benchmarks.export.question_writer import iter_exported_questions
from unreel.benchmarks.loader import open_benchmark
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.evaluation.inspect_task import review
from unreel.media.reader import MediaReader, run_trusted_task
from unreel.protocols.protocol import get_protocol

# inspect_ai leaves streams open, which Python tells when it sweeps them up.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Unclosed <MemoryObject:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:The .initial. parameter is deprecated:DeprecationWarning"),
    pytest.mark.usefixtures("sweep"),
]
CLIPS = ("real/a", "Veo/a", "real/b", "Veo/b")


@pytest.fixture
def sweep() -> Iterator[None]:
    yield
    gc.collect()


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reality")
    (folder / "clips.csv").write_text(
        "clip,difficulty,prompt\na,easy,\nb,hard,\n", encoding="utf-8"
    )
    for seed, name in enumerate(CLIPS):
        path = folder / f"{name}.mp4"
        path.parent.mkdir(exist_ok=True)
        recipe = ClipRecipe(width=96, height=64, rate=Fraction(12), n_frames=12, seed=seed)
        path.write_bytes(synthesise(recipe))
    return folder


def says(reply: str | list[Any] | ModelOutput) -> ModelOutput:
    output = reply if isinstance(reply, ModelOutput) else ModelOutput.from_content("mock", reply)
    # Else the mock counts tokens, for which it loads a table from the network.
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


def answering(*replies: str | list[Any] | ModelOutput) -> Model:
    return get_model("mockllm/model", custom_outputs=[says(reply) for reply in replies])


def ask(bench: Path, model: Model, logs: Path, **flags: Any) -> EvalLog:
    task = review(str(bench), **flags)
    # One at a time: the mock's replies are handed out in the order of the questions.
    (log,) = run_eval(
        task, model=model, log_dir=str(logs), display="none", max_samples=1, max_connections=1
    )
    return log


def figures_of(log: EvalLog) -> dict[str, float]:
    assert log.results is not None
    (scores,) = log.results.scores
    return {name: metric.value for name, metric in scores.metrics.items()}


def samples_of(log: EvalLog) -> list[EvalSample]:
    assert log.samples is not None
    return sorted(log.samples, key=lambda sample: CLIPS.index(str(sample.id).partition(" | ")[0]))


def items(bench: Path, recipe: BenchmarkExportRecipe) -> Iterator[ExportedQuestion]:
    questions = iter_exported_questions(
        open_benchmark(bench), recipe, reader=MediaReader(run_trusted_task)
    )
    return (question for question in questions if isinstance(question, ExportedQuestion))


@pytest.mark.parametrize(("cap", "size"), [(None, (96, 64)), (1_000, (38, 25))])
def test_frames_and_the_exact_prompt_are_shown(
    bench: Path, tmp_path: Path, cap: int | None, size: tuple[int, int]
) -> None:
    said = answering(*["<answer>1</answer>"] * 4)
    log = ask(bench, said, tmp_path, sampling="uniform-3", max_pixels=cap)
    assert log.status == "success"
    content = resolve_sample_attachments(samples_of(log)[0]).messages[0].content
    assert isinstance(content, list)
    prompt, *shown = content
    assert isinstance(prompt, ContentText)
    assert prompt.text == get_protocol("reality").prompt("paper").text.removesuffix("<video >")
    assert len(shown) == 3
    for part in shown:
        assert isinstance(part, ContentImage)
        data = base64.b64decode(part.image.removeprefix("data:image/jpeg;base64,"))
        assert Image.open(io.BytesIO(data)).size == size


def test_the_figures_are_those_of_our_scorer(bench: Path, tmp_path: Path) -> None:
    replies = ["<answer>1</answer>", "<answer>0</answer>", "<answer>0</answer>", "Real, I think."]
    log = ask(bench, answering(*replies), tmp_path)
    recipe = BenchmarkExportRecipe(name="review", protocol="reality")
    ours = flatten_scorecard_metrics(
        score_exported_replies(recipe, zip(items(bench, recipe), replies, strict=True))
    )
    assert figures_of(log) == pytest.approx(ours)
    assert ours["real-accuracy"] == 50


def test_a_reply_that_cannot_be_read_is_a_value_with_a_reason(bench: Path, tmp_path: Path) -> None:
    log = ask(bench, answering("Real.", *["<answer>1</answer>"] * 3), tmp_path)
    first, second, *_ = samples_of(log)
    assert first.scores is not None
    assert second.scores is not None
    score = first.scores["verdict"]
    assert score.value == {"answered": True, "read": False}
    assert score.reason == "invalid_response_format"
    assert score.answer is None
    assert score.metadata is not None
    assert score.metadata["verdict"]["label"] == {"reason": "missing", "found": ""}
    assert second.scores["verdict"].value == {"answered": True, "read": True}
    assert second.scores["verdict"].answer == "real"
    figures = figures_of(log)
    assert figures["unread: label: missing"] == 1
    assert figures["real-accuracy"] == 100
    assert figures["real-accuracy (n)"] == 1


def test_a_clip_that_cannot_be_shown_is_not_asked_about(
    bench: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    copy = tmp_path_factory.mktemp("broken")
    for name in ("clips.csv", *(f"{clip}.mp4" for clip in CLIPS)):
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_bytes((bench / name).read_bytes())
    (copy / "real/a.mp4").write_bytes(b"no video at all")
    log = ask(copy, answering(*["<answer>0</answer>"] * 3), tmp_path)
    first = samples_of(log)[0]
    assert first.scores is not None
    assert first.scores["verdict"].value == {"answered": False, "read": False}
    assert not any(message.role == "assistant" for message in first.messages)
    figures = figures_of(log)
    assert (figures["questions"], figures["answered"]) == (4, 3)
    assert [name for name in figures if name.startswith("failed: ")] == [
        f"failed: {first.scores['verdict'].reason}"
    ]


def test_thoughts_that_inspect_takes_out_are_read_again(bench: Path, tmp_path: Path) -> None:
    table = bench / "rated.jsonl"
    rows = [f'{{"file_name": "{clip}.mp4", "score": {i + 1}}}' for i, clip in enumerate(CLIPS)]
    table.write_text("\n".join(rows), encoding="utf-8")
    thought = ContentReasoning(
        reasoning="Problem Description: It melts.\nStandard Adherence: So 3."
    )
    replies = [[thought, ContentText(text=f"<answer>{i}</answer>")] for i in (1, 2, 4, 3)]
    log = ask(table, answering(*replies), tmp_path, protocol="realism", layout="realism")
    figures = figures_of(log)
    assert (figures["questions"], figures["answered"]) == (4, 4)
    assert log.samples is not None
    scores = log.samples[0].scores
    assert scores is not None
    assert scores["verdict"].metadata is not None
    assert scores["verdict"].metadata["verdict"]["problem"] == "It melts."


def test_pairs_are_numbered_and_times_are_shown_for_traces(bench: Path, tmp_path: Path) -> None:
    pairs = ask(bench, answering("1", "2"), tmp_path, protocol="preference", sampling="uniform-1")
    traces = ask(
        bench,
        answering(*["REAL"] * 4),
        tmp_path,
        protocol="trace",
        box_space="permille",
        sampling="uniform-1",
    )
    assert figures_of(pairs)["questions"] == 2
    assert figures_of(traces)["real-accuracy"] == 100
    shown = []
    for log in (pairs, traces):
        assert log.samples is not None
        content = log.samples[0].messages[0].content
        assert isinstance(content, list)
        shown.append([part.text for part in content[:-1] if isinstance(part, ContentText)])
    assert shown == [["Video 1:", "Video 2:"], ["0.50 s"]]


def test_flags_are_checked_before_anything_is_asked(bench: Path) -> None:
    with pytest.raises(InvalidSettingError, match="box"):
        review(str(bench), protocol="trace")
    with pytest.raises(UnreadableSourceError, match="no question"):
        review(str(bench), split="train")
