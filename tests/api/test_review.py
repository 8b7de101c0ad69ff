"""`review` and `review_async`: one clip before reviewers."""

import asyncio
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import unreel
from pace import slowness
from unreel.api.review import run_coroutine_blocking
from unreel.core.answer import Reply
from unreel.core.errors import InvalidSettingError, UnknownNameError, UnreadableSourceError
from unreel.core.failure import FailureReason
from unreel.core.judgement import Label
from unreel.core.question import Condition
from unreel.core.verdict import TraceVerdict

FAKE = (
    "FAKE<coordinates>[48, 32, 96, 64]</coordinates><start_time>0.25</start_time>"
    "<explanation>It floats.</explanation>"
)


def test_one_call_gives_a_verdict_with_place_time_and_reason(clip: Path, make_spy: Any) -> None:
    found = unreel.review(clip, models=make_spy(text=FAKE), protocols="trace")
    (opinion,) = found.opinions
    assert isinstance(opinion.verdict, TraceVerdict)
    assert opinion.verdict.label is Label.GENERATED
    assert opinion.verdict.start_us == 250_000
    assert opinion.verdict.box == unreel.Box(0.25, 0.25, 0.5, 0.5)
    assert found.is_complete
    assert found.clip.location == str(clip)
    assert str(found).splitlines()[1:3] == ["spy, trace@1: generated", "  from: 0.25 s"]


def test_a_condition_is_a_word_or_some_of_its_fields(clip: Path, make_spy: Any) -> None:
    spies = make_spy(), make_spy()
    ways = {"sampling": "uniform-3"}, Condition(sampling="uniform-3")
    for spy, way in zip(spies, ways, strict=True):
        unreel.review(clip, models=spy, protocols=["reality"], condition=way, trusted=True)
    first, second = (spy.sheets[0] for spy in spies)
    assert len(first.inputs[0].frames) == 3
    assert (first.key, first.condition) == (second.key, second.condition)


def test_a_clip_is_asked_about_again_when_perturbed(clip: Path, make_spy: Any) -> None:
    spy, calm = make_spy(), make_spy()
    found = unreel.review(clip, models=spy, protocols="reality", perturb=True, trusted=True)
    assert len(spy.sheets) == 4
    assert [stability.state for stability in found.stabilities] == ["steady"]
    assert unreel.review(clip, models=calm, protocols="reality", trusted=True).stabilities == ()
    assert len(calm.sheets) == 1


def test_a_reviewer_that_raises_costs_its_own_answer_only(clip: Path, make_spy: Any) -> None:
    def act(sheet: Any) -> Any:
        msg = "the weights are gone"
        raise ValueError(msg)

    found = unreel.review(
        clip, models=[make_spy(act=act), "always-real"], protocols="reality", trusted=True
    )
    broken, fine = found.opinions
    assert broken.outcome == unreel.Failure(
        FailureReason.STAGE_FAILED, "ValueError: the weights are gone"
    )
    assert fine.headline == "real"
    assert not found.is_complete
    assert "the weights are gone" in str(found)


def test_an_answer_that_is_none_says_what_was_wanted(clip: Path, make_spy: Any) -> None:
    spy = make_spy(act=lambda sheet: "REAL")
    (opinion,) = unreel.review(clip, models=spy, protocols="reality", trusted=True).opinions
    assert opinion.outcome.reason is FailureReason.MALFORMED_REPLY
    assert "answer returned str, and not a Reply or a Failure" in opinion.outcome.detail


@pytest.mark.parametrize("name", ["no.mp4", "text.mp4"])
def test_an_unreadable_clip_is_an_error_with_its_reason(name: str, tmp_path: Path) -> None:
    (tmp_path / "text.mp4").write_text("no video")
    with pytest.raises(UnreadableSourceError) as caught:
        unreel.review(tmp_path / name, models="coin")
    assert isinstance(caught.value, unreel.UnreelError)
    assert name in str(caught.value)
    assert ".." not in str(caught.value)


@pytest.mark.parametrize(
    ("asked", "kind", "words"),
    [
        ({"models": "coinn"}, InvalidSettingError, "Did you mean 'coin'"),
        ({"models": "opnai/gpt-5"}, UnknownNameError, "Did you mean 'openai'"),
        ({"models": []}, InvalidSettingError, "no model is named"),
        (
            {"models": 3},
            InvalidSettingError,
            "missing attributes: name, wants, box_space, answer, close",
        ),
        ({"protocols": ()}, InvalidSettingError, "none is named"),
        ({"protocols": "realty"}, UnknownNameError, "Did you mean 'reality'"),
        ({"protocols": "preference"}, InvalidSettingError, "does not ask about one clip"),
        ({"condition": {"samplin": "uniform-8"}}, InvalidSettingError, "Did you mean 'sampling'"),
        ({"parser": "lenent"}, UnknownNameError, "Did you mean 'lenient'"),
        ({"deadlin_s": 3}, InvalidSettingError, "Did you mean 'deadline_s'"),
    ],
)
def test_what_nobody_can_do_is_refused_in_words(
    asked: dict[str, Any], kind: type[Exception], words: str, clip: Path
) -> None:
    with pytest.raises(kind, match=words):
        unreel.review(clip, **{"models": "coin", **asked})


def test_two_reviewers_of_one_name_are_refused_and_one_twice_is_asked_once(
    clip: Path, make_spy: Any
) -> None:
    spy = make_spy()
    found = unreel.review(
        clip, models=["coin", "coin", spy, spy], protocols="reality", trusted=True
    )
    assert [opinion.reviewer for opinion in found.opinions] == ["coin", "spy"]
    with pytest.raises(InvalidSettingError, match="two reviewers are named 'spy'"):
        unreel.review(clip, models=[make_spy(), make_spy()])


def test_it_works_inside_a_running_event_loop(clip: Path) -> None:
    async def notebook() -> unreel.Review:
        return unreel.review(clip, models="always-real", protocols="reality", trusted=True)

    assert asyncio.run(notebook()).opinions[0].headline == "real"


def test_two_clips_can_be_under_way_at_once(films: Path, make_spy: Any) -> None:
    both = threading.Barrier(2, timeout=60)

    def meet(sheet: Any) -> Reply:
        both.wait()
        return Reply(text="<answer>1</answer>")

    class Meeting(make_spy):
        async def answer(self, sheet: Any) -> Any:
            return await asyncio.to_thread(meet, sheet)

    async def ask() -> list[unreel.Review]:
        clips = [films / "real" / f"{number}.mp4" for number in range(2)]
        return await asyncio.gather(
            *(
                unreel.review_async(c, models=Meeting(), protocols="reality", trusted=True)
                for c in clips
            )
        )

    assert [found.opinions[0].headline for found in asyncio.run(ask())] == ["real", "real"]


def test_ctrl_c_in_a_notebook_ends_what_is_waited_for() -> None:
    ended: list[str] = []

    async def sleep() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def notebook() -> None:
        run_coroutine_blocking(sleep())

    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    began_s = time.monotonic()
    loop = asyncio.new_event_loop()
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(notebook())
    finally:
        timer.join()
        loop.close()
    assert ended == ["cancelled"]
    assert time.monotonic() - began_s < 30 * slowness()
