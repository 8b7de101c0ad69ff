"""A megabyte of anything is read in about a second: no text can hold up a run."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unreel.protocols.protocol import PROTOCOLS, Reading, protocol
from unreel.protocols.space import BoxSpace

pytestmark = pytest.mark.volume

MEGABYTE = 1_000_000
# One pass takes well under a second here; a pass for every tag would take hours.
MOST_SECONDS = 8.0

SHAPES = [
    " ", "\n", "a", "1", "-", "[", "<", "</", "'", "*", "İ", "1:", "1.", "1 ", "1, ",
    "<answer>", "<answer> ", "<answer>1", "</answer>", "<answer>9</answer>", "<answer><", "< answer",
    "<coordinates>", "<coordinates>[", "<coordinates>[1, 2, 3, 4]</coordinates>", "<start_time>2", "<explanation>",
    "<think>", "</think>", "</think> ", "REAL ", "real ", "not REAL ", "REAL or ", "isn't real",
    "Problem Description:", "Problem Description: Standard Adherence:", "*#_", "problem description ",
    "The unnatural part is at [", "unnatural part is (", "unnatural part is at [1] starting 2", "The reason is because ",
    "the reason is ", "score: ", "I'm sorry ", "error", "12:34:56 to ", "2 - ",
]  # fmt: skip


def parse_in_all_ways(text: str) -> None:
    """`lenient` tries all that `strict` tries, and more."""
    for name in PROTOCOLS.names():
        for variant in {"paper", "fine-tuning", "paper-verbal"} & set(protocol(name).prompts):
            reading = Reading(mode="lenient", prompt=variant, space=BoxSpace("unit", 1, 1))
            protocol(name).parse(text, reading)


@pytest.mark.parametrize("shape", SHAPES)
def test_one_shape_repeated_to_a_megabyte(shape: str) -> None:
    started = time.process_time()
    parse_in_all_ways(shape * (MEGABYTE // len(shape)))
    assert time.process_time() - started < MOST_SECONDS


@settings(max_examples=5, database=None)
@given(
    st.lists(st.sampled_from(SHAPES), min_size=2, max_size=4).map("".join),
    st.sampled_from(
        ["", "FAKE. ", "<think>", "<answer>", "<coordinates>[", "Problem Description:"]
    ),
    st.sampled_from(["", "</answer>", "</coordinates>", "]", "real"]),
)
def test_mixed_shapes_repeated_to_a_megabyte(shape: str, head: str, tail: str) -> None:
    started = time.process_time()
    parse_in_all_ways(head + shape * (MEGABYTE // len(shape)) + tail)
    assert time.process_time() - started < MOST_SECONDS
