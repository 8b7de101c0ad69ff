"""Eight times the text takes eight times as long, whatever it says: no text can hold up a run."""

import gc
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unreel.protocols.box_space import BoxSpace
from unreel.protocols.protocol import PROTOCOLS, AnswerContext, get_protocol

pytestmark = pytest.mark.volume

SMALL, LARGE = 20_000, 160_000
MOST_GROWTH = 24
"""Eight in a straight line, 64 where each mark is followed by a pass over the rest."""
TOO_SHORT_S = 0.5
"""Growth from a smaller time is chance."""

SHAPES = [
    " ", "\n", "a", "1", "-", "[", "<", "</", "'", "*", "İ", "1:", "1.", "1 ", "1, ",
    "<answer>", "<answer> ", "<answer>1", "</answer>", "<answer>9</answer>", "<answer><", "< answer",
    "<coordinates>", "<coordinates>[", "<coordinates>[1, 2, 3, 4]</coordinates>", "<start_time>2", "<explanation>",
    "<think>", "</think>", "</think> ", "REAL ", "real ", "not REAL ", "REAL or ", "isn't real",
    "Problem Description:", "Problem Description: Standard Adherence:", "*#_", "problem description ",
    "The unnatural part is at [", "unnatural part is (", "unnatural part is at [1] starting 2", "The reason is because ",
    '[{"start": 1, "end": 2},', '{"segments": [', "{", "[[1, 2], ", "<type>other</type> in <t>[1, 2]</t>", "<type>", "<t>[", "<bbox>[1,",
    "the reason is ", "score: ", "I'm sorry ", "error", "12:34:56 to ", "2 - ",
]  # fmt: skip


def parse_in_all_ways(text: str) -> None:
    """`lenient` tries all that `strict` tries, and more."""
    for name in PROTOCOLS.names():
        for variant in {"paper", "fine-tuning", "paper-verbal", "tagged"} & set(
            get_protocol(name).prompts
        ):
            reading = AnswerContext(mode="lenient", prompt=variant, space=BoxSpace("unit", 1, 1))
            get_protocol(name).parse(text, reading)


def require_linear(shape: str, head: str = "", tail: str = "") -> None:
    def measure_s(size: int) -> float:
        text = head + shape * (size // len(shape)) + tail
        gc.disable()  # a collection takes as long as the objects of all other tests need
        started = time.process_time()
        try:
            parse_in_all_ways(text)
        finally:
            gc.enable()
        return time.process_time() - started

    large_s = measure_s(LARGE)
    assert large_s < TOO_SHORT_S or large_s < MOST_GROWTH * measure_s(SMALL)


@pytest.mark.parametrize(
    "shape", SHAPES[::2] + [pytest.param(s, marks=pytest.mark.slow) for s in SHAPES[1::2]]
)
def test_one_shape_over_and_over(shape: str) -> None:
    require_linear(shape)


@settings(max_examples=5, database=None)
@given(
    st.lists(st.sampled_from(SHAPES), min_size=2, max_size=4).map("".join),
    st.sampled_from(
        ["", "FAKE. ", "<think>", "<answer>", "<coordinates>[", "Problem Description:"]
    ),
    st.sampled_from(["", "</answer>", "</coordinates>", "]", "real"]),
)
def test_mixed_shapes_over_and_over(shape: str, head: str, tail: str) -> None:
    require_linear(shape, head, tail)
