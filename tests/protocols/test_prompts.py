"""The papers' words are the instrument: each prompt is compared with the specification's quotation."""

import re
from pathlib import Path

import pytest

from unreel.core.box import Box
from unreel.core.errors import UnknownNameError
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Trace
from unreel.core.verdict import Unparsed, UnparsedReason
from unreel.protocols.preference.prompts import PROMPTS as PREFERENCE
from unreel.protocols.protocol import Reading, protocol
from unreel.protocols.realism.prompts import PROMPTS as REALISM
from unreel.protocols.realism.prompts import target as realism_target
from unreel.protocols.reality.prompts import PROMPTS as REALITY
from unreel.protocols.reality.prompts import STORYBOARD
from unreel.protocols.space import BoxSpace
from unreel.protocols.trace.judge import EXAMPLES, JUDGE, judge_prompt, parse_judge
from unreel.protocols.trace.prompts import PROMPTS as TRACE
from unreel.protocols.trace.prompts import SENTENCE_PROMPTS, VIDEO_MARK, target

FRAME = BoxSpace("pixel", 640, 360)
MELTING = Trace(
    span=TimeSpan(1_500_000, 2_000_000),
    track=(BoxAt(1_500_000, Box(0.25, 0.5, 0.5, 0.75)),),
    explanation="the hand melts.",
)


@pytest.mark.parametrize(
    "prompt",
    [
        TRACE["paper"],
        TRACE["fine-tuning"],
        JUDGE,
        REALISM["paper"],
        REALITY["paper"],
        REALITY["direct"],
        PREFERENCE["paper"],
    ],
    ids=lambda prompt: prompt.text[:30],
)
def test_a_quoted_prompt_is_word_for_word_the_papers(shared: Path, prompt: object) -> None:
    lines = (shared / "PROTOCOLS.md").read_text(encoding="utf-8").splitlines()
    quoted = [line.removeprefix(">").strip() for line in lines if line.startswith(">")]
    assert " ".join(prompt.text.split()) in " ".join(quoted)  # type: ignore[attr-defined]


def test_the_realism_prompt_keeps_the_papers_lines() -> None:
    lines = REALISM["paper"].text.splitlines()
    assert [line[:6] for line in lines[2:7]] == ["1(Bad)", "2(Poor", "3(Norm", "4(Good", "5(Exce"]
    assert len(lines) == 11


def test_variants_leave_out_what_they_are_named_after() -> None:
    assert "Response Structure" not in REALISM["no-structure"].text
    assert "<think>" in REALISM["no-structure"].text
    assert "<think>" not in REALISM["score-only"].text
    assert all("<answer> </answer>" in prompt.text for prompt in REALISM.values())
    assert "starting time" not in TRACE["fine-tuning-no-time"].text
    assert "an explanation" in TRACE["fine-tuning-no-time"].text
    assert "explanation" not in TRACE["fine-tuning-no-explanation"].text
    assert TRACE["fine-tuning-no-both"].text.endswith("in [x0, y0, x1, y1] format.")


@pytest.mark.parametrize("name", ["paper-verbal", "no-structure-verbal", "score-only-verbal"])
def test_verbal_variants_name_no_number(name: str) -> None:
    assert re.search(r"[0-9]", REALISM[name].text) is None
    assert "\nBad: " in REALISM[name].text
    assert "five terms" in REALISM[name].text


def test_only_quoted_prompts_claim_the_papers_wording() -> None:
    quoted = {
        f"{name}/{variant}"
        for name in ("trace", "realism", "reality", "preference")
        for variant, prompt in protocol(name).prompts.items()
        if prompt.wording == "paper"
    }
    assert quoted == {"trace/paper", "trace/fine-tuning", "realism/paper", "reality/paper", "reality/direct"}  # fmt: skip


def test_our_own_wordings_ask_for_what_the_paper_describes() -> None:
    for word in (
        "even",
        "visual realism",
        "people and objects",
        "sounds",
        "temporal coherence",
        "2 to 4",
    ):
        assert word in REALITY["detailed"].text
    for word in ("8", "one continuous paragraph", "scene", "subjects", "sounds"):
        assert word in STORYBOARD.text


def test_fine_tuning_prompts_start_with_the_video() -> None:
    assert all(TRACE[name].text.startswith(VIDEO_MARK) for name in SENTENCE_PROMPTS)
    assert not TRACE["paper"].text.startswith(VIDEO_MARK)


@pytest.mark.parametrize(
    ("variant", "answer"),
    [
        ("fine-tuning", "FAKE. The video is AI-generated. The unnatural part is at [160, 180, 320, 270] starting 1.5 seconds. The reason is because the hand melts."),
        ("fine-tuning-no-time", "FAKE. The video is AI-generated. The unnatural part is at [160, 180, 320, 270]. The reason is because the hand melts."),
        ("fine-tuning-no-explanation", "FAKE. The video is AI-generated. The unnatural part is at [160, 180, 320, 270] starting 1.5 seconds."),
        ("fine-tuning-no-both", "FAKE. The video is AI-generated. The unnatural part is at [160, 180, 320, 270]."),
    ],
)  # fmt: skip
def test_training_answers_follow_the_papers_template(variant: str, answer: str) -> None:
    assert target(MELTING, space=FRAME, variant=variant) == answer


def test_training_answers_leave_out_what_a_row_does_not_hold() -> None:
    bare = Trace(span=TimeSpan(0, 1), track=(BoxAt(0, Box(0, 0, 1, 1)),))
    assert target(bare, space=FRAME).endswith("at [0, 0, 640, 360] starting 0 seconds.")
    unplaced = Trace(span=TimeSpan(0, 1), explanation="it floats.")
    assert target(unplaced, space=FRAME) == (
        "FAKE. The video is AI-generated. The reason is because it floats."
    )
    assert target(None, space=FRAME) == "REAL. The video is real. There is no unnatural part."


def test_a_box_thinner_than_a_pixel_stays_a_box() -> None:
    thin = Trace(span=TimeSpan(0, 1), track=(BoxAt(0, Box(0.9999, 0.2, 1.0, 0.2001)),))
    assert "[639, 72, 640, 73]" in target(thin, space=FRAME)


def test_zero_shot_has_no_training_answer() -> None:
    with pytest.raises(UnknownNameError, match="fine-tuning-no-both"):
        target(None, space=FRAME, variant="paper")


def test_training_answers_are_read_back_by_the_strict_parser() -> None:
    reading = Reading(prompt="fine-tuning", space=FRAME)
    verdict = protocol("trace").parse(target(MELTING, space=FRAME), reading)
    assert verdict.box == Box(0.25, 0.5, 0.5, 0.75)
    assert verdict.start_us == 1_500_000
    assert verdict.explanation == "the hand melts."
    rated = realism_target(score=2, problem="A hand melts.", adherence="Conspicuous anomalies.")
    read = protocol("realism").parse(rated, Reading())
    assert (read.score, read.problem, read.adherence) == (
        2,
        "A hand melts.",
        "Conspicuous anomalies.",
    )


def test_the_judge_sees_the_papers_examples_and_then_the_pair() -> None:
    prompt = judge_prompt("the hand melts", "the hand has six fingers")
    assert prompt.startswith(JUDGE.text)
    assert [prompt.count(truth) for truth, _, _ in EXAMPLES] == [1, 2, 1]
    assert [score for _, _, score in EXAMPLES] == ["0", "1", "0.5"]
    assert prompt.endswith(
        "Ground truth: the hand melts\nPrediction: the hand has six fingers\nScore:"
    )


@pytest.mark.parametrize(("text", "score"), [("0", 0.0), (" 0.5\n", 0.5), ("1", 1.0)])
def test_the_judge_gives_one_of_three_scores(text: str, score: float) -> None:
    assert parse_judge(text) == score


@pytest.mark.parametrize(
    "text", ["0.7", "2", "Score: 1", "1/1", "-1", "½", "1 because the object is right"]
)
def test_any_other_judgement_is_asked_again_and_never_0(text: str) -> None:
    assert parse_judge(text) == Unparsed(UnparsedReason.MALFORMED, text)
    assert parse_judge(" ") == Unparsed(UnparsedReason.MISSING)
