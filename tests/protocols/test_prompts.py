"""The papers' words are the instrument: each prompt is compared with the printed text, byte for byte."""

import hashlib
import re
from pathlib import Path

import pytest

from unreel.core.verdict import Unparsed, UnparsedReason
from unreel.protocols.presentation import split_prompt_at_clips
from unreel.protocols.protocol import ProtocolPrompt, get_protocol
from unreel.protocols.realism.prompts import PROMPTS as REALISM
from unreel.protocols.reality.prompts import STORYBOARD
from unreel.protocols.trace.explanation_judge import JUDGE, build_judge_prompt, parse_judge_score
from unreel.protocols.trace.prompts import PROMPTS as TRACE

PRINTED = {
    "trace/paper": ("dtr-zero-shot", "3b920f00d167c9d5"),
    "judge": ("dtr-judge", "515a1b75f2d9e5c5"),
    "realism/paper": ("vrb-three-step", "35101555d51fceb8"),
    "realism/no-structure": ("vrb-reasoning", "c15f60ed75a886f9"),
    "reality/paper": ("vrt-default", "d13e89198e71b8fa"),
    "reality/direct": ("vrt-direct", "62e5af8ae8b939af"),
    "reality/detailed": ("vrt-detailed", "afc29a6994ddb599"),
    "storyboard": ("vrt-storyboard", "9aacdc57a02dd8fe"),
    "preference/as-printed": ("vrt-preference-reasoning", "8bb90d912f28a125"),
    "preference/as-printed-direct": ("vrt-preference-direct", "d6db56c8b130f544"),
}
"""Where each text is printed, and the start of its SHA-256: it holds without the files too."""


def texts() -> dict[str, ProtocolPrompt]:
    ours = {
        f"{name}/{variant}": prompt
        for name in ("trace", "realism", "reality", "preference", "locate")
        for variant, prompt in get_protocol(name).prompts.items()
    }
    return ours | {"judge": JUDGE, "storyboard": STORYBOARD}


@pytest.mark.parametrize("name", PRINTED)
def test_a_printed_text_is_byte_for_byte_the_papers(shared: Path, name: str) -> None:
    printed = (shared / "prompts" / f"{PRINTED[name][0]}.txt").read_bytes().removesuffix(b"\n")
    if name == "trace/paper":  # six quoted strings one under the other
        printed = b" ".join(line[1:-1] for line in printed.split(b"\n"))
    assert texts()[name].text.encode() == printed


@pytest.mark.parametrize("name", PRINTED)
def test_a_printed_text_does_not_change_unnoticed(name: str) -> None:
    assert hashlib.sha256(texts()[name].text.encode()).hexdigest()[:16] == PRINTED[name][1]


def test_the_fine_tuning_text_is_word_for_word_the_quotation(shared: Path) -> None:
    lines = (shared / "PROTOCOLS.md").read_text(encoding="utf-8").splitlines()
    quoted = [line.removeprefix(">").strip() for line in lines if line.startswith(">")]
    assert TRACE["fine-tuning"].text in " ".join(quoted)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("reality/paper", "answer here </answer>. ", ""),
        ("reality/direct", "answer here </answer>.\n\n", ""),
        ("reality/detailed", "from an ASMR video.\n\n", "\n\nYour task"),
        ("storyboard", "cinematic paragraph. ", ""),
        ("preference/as-printed", "", "Based on"),
        ("preference/as-printed-direct", "", "Given the"),
        ("preference/paper", "", "Based on"),
        ("realism/paper", "", "You are"),
        ("trace/paper", "", "Decide"),
        ("trace/fine-tuning", "", "<video> Decide"),
    ],
)
def test_clips_go_where_the_text_has_them(name: str, before: str, after: str) -> None:
    text = texts()[name].text
    said = split_prompt_at_clips(text)
    assert said[0].endswith(before)
    assert said[1].startswith(after)
    assert bool(said[0]) is bool(before)
    assert bool(said[1]) is bool(after)
    assert "".join(said) == (text if name.startswith("trace") else re.sub(r"<video ?>", "", text))


def test_variants_leave_out_what_they_are_named_after() -> None:
    assert "Response Structure" not in REALISM["no-structure"].text
    assert "<think>" in REALISM["no-structure"].text
    assert "<think>" not in REALISM["score-only"].text
    assert all("<answer> </answer>" in prompt.text for prompt in REALISM.values())
    assert "starting time" not in TRACE["fine-tuning-no-time"].text
    assert "an explanation" in TRACE["fine-tuning-no-time"].text
    assert "explanation" not in TRACE["fine-tuning-no-explanation"].text
    assert TRACE["fine-tuning-no-both"].text.endswith("in [x0, y0, x1, y1] format.")


def test_the_judge_sees_the_papers_examples_and_then_the_pair_in_their_layout() -> None:
    prompt = build_judge_prompt("the hand melts", "the hand has six fingers")
    asked = "Ground Truth: 'the hand melts'\nPredicted : 'the hand has six fingers'\nAnswer    :"
    assert prompt == f"{JUDGE.text}\n\n{asked}"


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("0", 0.0),
        (" 0.5\n", 0.5),
        ("1", 1.0),
        ("1.0", 1.0),
        ("0.0", 0.0),
        ("0.50", 0.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("**1**", 1.0),
        ("`0.5`", 0.5),
        ("'0'", 0.0),
        ("Score: 1", 1.0),
        ("**Score:** 0.5", 0.5),
        ("Answer    : 0", 0.0),
        ("rating = 1.0.", 1.0),
    ],
)
def test_the_judge_gives_one_of_three_scores(text: str, score: float) -> None:
    assert parse_judge_score(text) == score


@pytest.mark.parametrize(
    "text",
    [
        "0.7", "2", "1/1", "-1", "½", "1 because the object is right", "0 or 1", "1\n1", "01", "10",
        "1.5", "0.05", "0.51", "Score 1", "Score: 1/10", "score: 3-2", "Score: Score: 1", "1</score>",
        "Predicted : 'x'\nAnswer    : 1", "not 1", "Score: 10", "\u0661",
    ],
)  # fmt: skip
def test_any_other_judgement_is_asked_again_and_never_0(text: str) -> None:
    assert parse_judge_score(text) == Unparsed(UnparsedReason.MALFORMED, text)
    assert parse_judge_score(" ") == Unparsed(UnparsedReason.MISSING)
