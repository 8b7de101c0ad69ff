"""The words of answers from a file: judged and compared as those of a run."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from report.reported import accuse, entry, lay_out, trace
from unreel.core.judgement import Rating
from unreel.core.verdict import Unparsed
from unreel.evaluation.explanation_scores import ReasonSimilarityScorer
from unreel.protocols.protocol import AnswerContext, ScoredQuestion, get_protocol

NAMES = ("veo-1", "veo-2", "veo-3")
Type = Callable[..., Any]


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """What is typed to score a file of three explanations."""
    bench = lay_out(
        tmp_path / "bench", [entry(name, "Veo", traces=[trace()], duration_s=1) for name in NAMES]
    )
    file = tmp_path / "answers.jsonl"
    lines = [{"name": name, "text": accuse(why=f"{name} melts")} for name in NAMES]
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return ["score", str(file), "--benchmark", str(bench), "--protocol", "trace", *SPACE, "--json"]


SPACE = ("--box-space", "unit")


def test_a_judge_scores_the_explanations_of_a_file_and_is_asked_once(
    words: list[str], server: Any, typed: Type, tmp_path: Path
) -> None:
    server.text = "0.5"
    plain = json.loads(typed(*words).out)
    first, again = (json.loads(typed(*words, "--judge", server.model).out) for _ in range(2))
    assert len(server.asked) == 3
    assert first["scorecard"] == again["scorecard"] != plain["scorecard"]
    explained = next(m for m in first["scorecard"]["metrics"] if m["name"] == "explanation")
    assert explained["value"]["value"] == 50
    assert [one["texts"]["judges"][0]["spent"]["n_requests"] for one in (first, again)] == [3, 0]
    assert plain["texts"] == {}
    assert (tmp_path / "answers.jsonl.rulings" / "rulings.lance").is_dir()


def test_rulings_on_a_file_go_where_a_person_says_and_other_answers_use_them(
    words: list[str], server: Any, typed: Type, tmp_path: Path
) -> None:
    server.text = "1"
    kept = ("--out", tmp_path / "kept")
    assert typed(*words, "--judge", server.model, *kept).status == 0
    assert not (tmp_path / "answers.jsonl.rulings").exists()
    other = tmp_path / "other.jsonl"
    lines = [{"name": name, "text": accuse(why="veo-1 melts")} for name in NAMES]
    other.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    said = typed("score", other, *words[2:], "--judge", server.model, *kept)
    assert json.loads(said.out)["texts"]["judges"][0]["scored"] == 3
    assert len(server.asked) == 3


class Letters:
    """An encoder of the tests: how often each letter occurs."""

    name = "letters"

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        return np.array([[text.count(chr(97 + n)) for n in range(26)] for text in texts], float)


@pytest.mark.parametrize("prompt", ["no-structure", "no-structure-verbal"])
def test_a_free_thought_is_compared_as_a_whole(prompt: str) -> None:
    realism, reading = get_protocol("realism"), AnswerContext(prompt=prompt)
    thought = "the hand melts into the cup, which breaks the laws of matter"
    said = realism.parse(f"<think>{thought}</think>\n<answer>2</answer>", reading)
    assert said.problem == thought
    truth = Rating(score=2, problem="the hand melts into the cup", adherence="which breaks laws")
    (row,) = ReasonSimilarityScorer(Letters())(
        [ScoredQuestion(subject="c", truth=truth, outcome=said)]
    )
    assert row.text_score > 0.9


def test_a_thought_is_no_reason_where_headings_were_asked_for() -> None:
    said = get_protocol("realism").parse(
        "<think>it melts</think><answer>2</answer>", AnswerContext()
    )
    assert isinstance(said.problem, Unparsed)
