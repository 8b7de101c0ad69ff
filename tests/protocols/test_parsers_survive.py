"""Every parser reads 4,000 generated texts, and 100,000 when there is time, without an exception and without inventing anything.

Hypothesis builds an answer from well-formed and broken pieces; each answer is then cut, mended, nested and
garbled into a batch of texts. What a parser returns is compared with a plain second reading.
"""

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unreel.core.box import Box
from unreel.core.judgement import Label
from unreel.core.verdict import (
    READABLE,
    LocateVerdict,
    Position,
    PreferenceVerdict,
    RealismVerdict,
    RealityVerdict,
    TraceVerdict,
    Unparsed,
)
from unreel.protocols.box_space import BoxSpace
from unreel.protocols.protocol import AnswerContext, get_protocol

pytestmark = pytest.mark.volume

PER_EXAMPLE = 200
SPACE = BoxSpace("pixel", 640, 360)
READINGS = {
    variant: (
        AnswerContext(mode="strict", prompt=variant, space=SPACE),
        AnswerContext(mode="lenient", prompt=variant, space=SPACE),
    )
    for variant in ("paper", "fine-tuning", "tagged")
}

NUMBERS = [
    "0",
    "1",
    "2",
    "3",
    "5",
    "6",
    "-7",
    "12.5",
    "0.25",
    ".5",
    "640",
    "1e3",
    "NaN",
    "inf",
    "007",
    "9" * 15,
    "٣",
    "½",
]
WORDS = [
    "REAL", "FAKE", "Real", "fake", "unreal", "not REAL", "REAL or FAKE", "AI-generated", "real-time", "FAKEé",
    "Bad", "Poor", "normal", "Good", "Excellent", "first", "second", "Video 1", "the second video is real",
    "I'm sorry, I can't say whether it is FAKE.", "Error code: 429", "2 validation errors for Chat",
    "Problem Description:", "Standard Adherence:", "**problem description**:", "Score: 4", "3/5", "4(Good)", "3(Good)",
    "The unnatural part is at [1, 2, 30, 40] starting 2.5 seconds.", "The reason is because the hand melts.",
    "starting 0:02", "[10, 20, 300, 200]", "[300, 20, 10, 200]", "10, 20, 300, 200", "[1,2,3]", "2-4", "00:00:02.5", "2.5s",
    "0:75", "-3", "1%", "\u00a0", "\u200b", "\ud800", "İ", "\u017f", "\x00", "\r\n", " ", "\n", "'", '"', "<", ">", "/", "[", "]", ",", ":",
]  # fmt: skip
NAMES = ["answer", "think", "coordinates", "start_time", "explanation", "Answer", "EXPLANATION "]
TAGS = [f"<{slash}{name}>" for name in NAMES for slash in ("", "/")]

number = st.one_of(st.sampled_from(NUMBERS), st.floats(-99, 999).map(lambda x: f"{x:.3f}"))
side = st.tuples(st.integers(-20, 300), st.integers(1, 300)).map(lambda p: (p[0], sum(p)))
corners = st.one_of(
    st.tuples(side, side).map(lambda p: f"[{p[0][0]}, {p[1][0]}, {p[0][1]}, {p[1][1]}]"),
    st.lists(number, min_size=3, max_size=5).map(lambda n: f"[{', '.join(n)}]"),
)
scrap = st.one_of(
    st.sampled_from(WORDS), st.sampled_from(TAGS), number, corners, st.text(max_size=12)
)
scraps = st.lists(scrap, max_size=6).map(" ".join)


def tagged(name: str, content: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    broken = [f"<{name}>", f"</ {name.title()}>", ""]
    closing = st.sampled_from([f"</{name}>"] * 5 + broken)
    return st.tuples(content, closing).map(lambda pair: f"<{name}>{pair[0]}{pair[1]}")


thought = st.one_of(st.just(""), tagged("think", scraps))
label = st.sampled_from(["REAL", "FAKE", "FAKE", "**FAKE**", "The video is FAKE.", "fake.", ""])
time = st.one_of(number, st.sampled_from(["2.5s", "0:02", "00:00:02.5", "2-4", "2s to 4s", "now"]))
trace_answer = st.one_of(
    st.tuples(
        thought,
        label,
        tagged("coordinates", st.one_of(corners, scraps)),
        tagged("start_time", st.one_of(time, scraps)),
        tagged("explanation", scraps),
    ).map("\n".join),
    st.tuples(label, corners, time, scraps).map(
        lambda p: (
            f"{p[0]}. The video is AI-generated. The unnatural part is at {p[1]} starting {p[2]} "
            f"seconds. The reason is because {p[3]}"
        )
    ),
)
score = st.one_of(number, st.sampled_from(["3", "4(Good)", "Good", "3(Good)", "Score: 2", "5."]))
realism_answer = st.tuples(
    st.tuples(scraps, scraps).map(
        lambda p: f"<think>Problem Description: {p[0]}\nStandard Adherence: {p[1]}</think>"
    ),
    tagged("answer", st.one_of(score, scraps)),
).map("\n".join)
verdict_tag = tagged(
    "answer", st.one_of(st.sampled_from("01"), st.sampled_from(["1 (real)", "fake"]), scraps)
)
reality_answer = st.tuples(
    thought, st.lists(verdict_tag, min_size=1, max_size=3).map(" no: ".join)
).map("\n".join)
preference_answer = st.tuples(
    thought, st.sampled_from(["1", "2", "'2'", "Video 1", "1. It moves", "The second video is real"]), scraps
).map(" ".join)  # fmt: skip

seconds = st.one_of(st.sampled_from(NUMBERS), st.floats(0, 60).map(lambda x: f"{x:.2f}"))
json_segment = st.tuples(seconds, seconds, corners, number, scraps).map(
    lambda p: (
        f'{{"start": {p[0]}, "end": {p[1]}, "boxes": [{{"time": {p[0]}, "box": {p[2]}}}], '
        f'"confidence": {p[3]}, "category": "other", "reason": {json.dumps(p[4])}}}'
    )
)
bare_segment = st.tuples(st.integers(0, 9), st.integers(10, 30)).map(
    lambda p: f'{{"start": {p[0]}, "end": {p[1]}.5}}'
)
tagged_segment = st.tuples(st.sampled_from(["other", "Anomaly"]), seconds, seconds, corners).map(
    lambda p: f"<type>{p[0]}</type> in <t>[{p[1]}, {p[2]}]</t> at <bbox>{p[3]}</bbox>"
)
locate_answer = st.one_of(
    st.lists(st.one_of(json_segment, bare_segment, bare_segment), max_size=3).map(
        lambda s: f"[{', '.join(s)}]"
    ),
    st.tuples(scraps, bare_segment, scraps).map(
        lambda p: f'{p[0]} {{"segments": [{p[1]}]}} {p[2]}'
    ),
    st.tuples(thought, st.lists(tagged_segment, max_size=3), st.sampled_from(["Fake", "Real"])).map(
        lambda p: f"{p[0]} {' '.join(p[1])}<answer>{p[2]}</answer>"
    ),
)


def derive(base: str, dice: Random) -> Iterator[str]:
    """`base`, and many texts that differ from it as answers in the wild do."""
    yield base
    for _ in range(PER_EXAMPLE - 1):
        text = base
        for _ in range(dice.randint(1, 3)):
            text = dice.choice(CHANGES)(text, dice)
        yield text


def _spot(text: str, dice: Random) -> int:
    return dice.randint(0, len(text))


def _cut_end(text: str, dice: Random) -> str:
    return text[: _spot(text, dice)]


def _cut_start(text: str, dice: Random) -> str:
    return text[_spot(text, dice) :]


def _cut_out(text: str, dice: Random) -> str:
    start = _spot(text, dice)
    return text[:start] + text[start + dice.randint(1, 12) :]


def _repeat(text: str, dice: Random) -> str:
    start = _spot(text, dice)
    return text[:start] + text[start : start + 40] * dice.randint(2, 4) + text[start:]


def _insert(text: str, dice: Random) -> str:
    spot = _spot(text, dice)
    return text[:spot] + dice.choice(dice.choice((WORDS, TAGS, NUMBERS))) + text[spot:]


def _nest(text: str, dice: Random) -> str:
    name, (start, end) = dice.choice(NAMES), sorted((_spot(text, dice), _spot(text, dice)))
    return f"{text[:start]}<{name}>{text[start:end]}</{name}>{text[end:]}"


def _garble(text: str, dice: Random) -> str:
    spot = _spot(text, dice)
    return text[:spot] + chr(dice.choice((dice.randint(0, 127), dice.randint(0, 0x10FFFF)))) + text[spot + 1 :]  # fmt: skip


def _swap_case(text: str, dice: Random) -> str:
    spot = _spot(text, dice)
    return text[:spot] + text[spot:].swapcase()


CHANGES = (_cut_end, _cut_start, _cut_out, _repeat, _insert, _nest, _garble, _swap_case)


def check_trace(text: str, verdict: TraceVerdict, mode: str) -> None:
    if isinstance(verdict.label, Label):
        word = "REAL" if verdict.label is Label.REAL else "FAKE"
        if mode == "strict":
            assert re.search(rf"(?<!\w)(?<!\w-){word}(?!\w|-\w)", text)
        assert CLAIM.search(plain(text))
    if isinstance(verdict.box, Box) and "%" not in plain(text):
        assert_in_order(verdict.box, numbers(plain(text)))
    if isinstance(verdict.start_us, int):
        times = clocks(plain(text)).union(numbers(plain(text)))
        assert any(math.isclose(verdict.start_us, n * 10**6, abs_tol=1) for n in times)
    if isinstance(verdict.explanation, str):
        assert verdict.explanation
        assert verdict.explanation in text


def assert_in_order(box: Box, said: list[float]) -> None:
    """The text says x0, y0, x1 and y1 in this order, perhaps with a sign before them."""
    left = iter(said)
    for corner, size in ((box.x0, 640), (box.y0, 360), (box.x1, 640), (box.y1, 360)):
        fits = (abs(corner - min(1, n / size)) < 1e-9 or corner == 0 for n in left)
        assert any(fits), (box, said)


def numbers(text: str) -> list[float]:
    return [float(n) for n in re.findall(r"[0-9]+(?:\.[0-9]+)?", text)]


def clocks(text: str) -> set[float]:
    """Every clock time in `text`, what is left of it without its first fields, and what units make of a number."""
    said = numbers(text)
    found = {n * 60 for n in said} | {n / 1000 for n in said}
    found |= {minutes * 60 + rest for minutes, rest in pairwise(said)}
    for clock in re.findall(r"[0-9]+(?::[0-9]+)+(?:\.[0-9]+)?", text):
        total = 0.0
        for place, field in enumerate(reversed(clock.split(":"))):
            total += float(field) * 60**place
            found.add(total)
    return found


def check_realism(text: str, verdict: RealismVerdict, mode: str) -> None:
    exact = re.findall(r"<answer>\s*([1-5])\s*</answer>", text)
    if mode == "strict" and isinstance(verdict.score, int):
        assert str(verdict.score) in exact
    elif isinstance(verdict.score, int):
        terms = ("one|bad", "two|poor", "three|normal", "four|good", "five|excellent")
        assert re.search(f"{verdict.score}|{terms[verdict.score - 1]}", plain(text))
    for reason in (verdict.problem, verdict.adherence):
        assert isinstance(reason, Unparsed) or (reason and reason in text)


def check_reality(text: str, verdict: RealityVerdict, mode: str) -> None:
    exact = re.findall(r"<answer>\s*([01])\s*</answer>", text)
    digits = {Label.REAL: "1", Label.GENERATED: "0"}
    said = None if isinstance(verdict.label, Unparsed) else digits[verdict.label]
    if mode == "strict":
        assert said is None or said in exact
    elif said:
        assert said in plain(text) or CLAIM.search(plain(text))


def check_preference(text: str, verdict: PreferenceVerdict, mode: str) -> None:
    if isinstance(verdict.real, Unparsed):
        return
    digit, word = ("1", "first") if verdict.real is Position.FIRST else ("2", "second")
    if mode == "strict":
        assert digit in text
    # "The first video is fake" leaves the second.
    assert digit in plain(text) or word in plain(text) or CLAIM.search(plain(text))


def check_locate(text: str, verdict: LocateVerdict, mode: str) -> None:
    if isinstance(verdict.segments, Unparsed):
        return
    if not verdict.segments:
        assert "[" in text or "real" in plain(text)
    exact = [float(n) for n in re.findall(r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", text)]
    said = [*exact, *numbers(plain(text)), *(clocks(plain(text)) if mode == "lenient" else ())]
    for segment in verdict.segments:
        span = segment.trace.span
        for at_us in (span.start_us, span.end_us, *(mark.at_us for mark in segment.trace.track)):
            assert any(math.isclose(at_us, n * 10**6, abs_tol=1) for n in said), (text, at_us)
        if segment.confidence is not None:
            known = {*said, *(n / 100 for n in said)}
            assert any(math.isclose(segment.confidence, n, abs_tol=1e-9) for n in known)
        assert all(category.value in plain(text) for category in segment.trace.categories)
        assert "\\" in text or segment.trace.explanation in text


CLAIM = re.compile(
    r"real|fake|\bai\b|generated|genuine|authentic|synthetic|artificial|filmed|真|假|生成"
)
"""Words by which a clip is called one or the other; a denial turns them round."""


INVISIBLE = re.compile("[\u0640\u064b-\u0652\u200b\u2060]")
"""Signs that no reader sees, and vowel signs of Arabic, which are written or not."""


@lru_cache(maxsize=1)
def plain(text: str) -> str:
    """What a reader sees: full-width letters are letters, and digits of any script are digits."""
    seen = INVISIBLE.sub("", unicodedata.normalize("NFKC", text).lower())
    return "".join(str(unicodedata.decimal(sign, sign)) for sign in seen)


PARTS = {
    "trace": ("label", "box", "start_us", "explanation"),
    "realism": ("score", "problem", "adherence"),
    "reality": ("label",),
    "preference": ("real",),
    "locate": ("segments",),
}


@pytest.mark.timeout(1_500)
@pytest.mark.parametrize("texts", [4_000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("name", "answers", "check"),
    [
        ("trace", trace_answer, check_trace),
        ("realism", realism_answer, check_realism),
        ("reality", reality_answer, check_reality),
        ("preference", preference_answer, check_preference),
        ("locate", locate_answer, check_locate),
    ],
)
def test_a_parser_reads_any_text_and_says_only_what_the_text_holds(
    name: str, texts: int, answers: st.SearchStrategy[str], check: Callable[[str, Any, str], None]
) -> None:
    parse = get_protocol(name).parse
    variants = [v for v in READINGS if v in get_protocol(name).prompts]
    seen = set[int]()
    read = dict.fromkeys(PARTS[name], 0)

    @settings(max_examples=texts // 140, database=None)  # some texts come twice
    @given(
        st.one_of(answers, answers, answers, scraps),
        st.integers(0, 2**32),
        st.sampled_from(variants),
    )
    def survive(base: str, seed: int, variant: str) -> None:
        for text in derive(base, Random(seed)):
            seen.add(hash(text))
            strict, lenient = (parse(text, reading) for reading in READINGS[variant])
            check(text, strict, "strict")
            if lenient != strict:
                check(text, lenient, "lenient")
            for part in PARTS[name]:
                exact, loose = getattr(strict, part), getattr(lenient, part)
                assert loose == exact or isinstance(exact, Unparsed), text
                read[part] += not isinstance(loose, Unparsed)
                for found in (p.found for p in (exact, loose) if isinstance(p, Unparsed)):
                    assert len(found) <= READABLE

    survive()
    assert len(seen) >= texts
    assert min(read.values()) >= texts // 100, "too few of the texts hold an answer to test with"
