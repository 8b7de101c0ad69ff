"""A service that makes clips, and all that can go wrong with one."""

import asyncio
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

pytest.importorskip("obstore", reason="needs the extra eval: pip install 'unreel[eval]'")

from creators.fault_server import CLIP, FAULTS, FaultService
from pace import slowness
from unreel.arena.run.creators import SeasonCreatorContext
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure, FailureReason
from unreel.core.settings import EnvironmentSettings
from unreel.creators.config import CreatorRecipeSection
from unreel.creators.contract import ClipBrief, Creator, CreatorInput, GeneratedClip
from unreel.creators.endpoint import EndpointCreatorConfig
from unreel.engine.storage_access import ClipAccessSettings
from unreel.testing.creators import CreatorKit, sample_frame

QUICK = {
    "deadline_s": 3.0,
    "attempt_s": 1.0,
    "poll_s": 0.02,
    "max_mb": 1,
    "sizes": [],
    "seconds": [],
}
SECRET = "sk-8e1f-never-shown"
TESTS = Path(__file__).parents[1]


def desk(folder: Path, name: str = "one") -> SeasonCreatorContext:
    """The arena's own workplace: its notes lie on disk."""
    folder.mkdir(parents=True, exist_ok=True)
    access = ClipAccessSettings(settings=EnvironmentSettings(fetch_mb=1, fetch_seconds=2))
    return SeasonCreatorContext(root=folder, key=name, access=access)


def brief(number: int = 0, setting: CreatorInput = CreatorInput.IMAGE_AND_TEXT) -> ClipBrief:
    return ClipBrief(
        id=f"scene-{number}",
        setting=setting,
        text="A ball crosses the picture.",
        first_frame=None if setting is CreatorInput.TEXT else sample_frame(),
        width=192,
        height=128,
        duration_us=1_500_000,
        seed=7,
    )


def creator_at(url: str, key_hosts: str = "", **keys: Any) -> Creator:
    section = CreatorRecipeSection.model_validate(
        {"name": "tested", "kind": "endpoint", "url": url, "model": "m", **QUICK, **keys}
    )
    return section.opener(settings=EnvironmentSettings(key_hosts=key_hosts)).open()


def make(creator: Creator, act: Callable[[], Awaitable[Any]]) -> Any:
    async def closing() -> Any:
        try:
            return await act()
        finally:
            await creator.close()

    return asyncio.run(closing())


def made_at(
    service: FaultService, fault: str, folder: Path, **keys: Any
) -> GeneratedClip | Failure:
    creator = creator_at(service.url(fault), **keys)
    return make(creator, lambda: creator.make(brief(), desk(folder)))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def shared() -> Iterator[FaultService]:
    with FaultService() as service:
        yield service


@pytest.fixture
def service() -> Iterator[FaultService]:
    with FaultService() as service:
        yield service


class TestEndpointCreator(CreatorKit):
    @pytest.fixture
    def creator(self, service: FaultService) -> Creator:
        return creator_at(service.url("good"))


OUTCOMES = {
    "good": None,
    "429": None,
    "500s": None,
    "submit-lost": None,
    "poll-500": None,
    "half-once": None,
    "wrong-codec": None,
    "duplicate": None,
    "huge-json": FailureReason.REPLY_TOO_LARGE,
    "bad-json": FailureReason.MALFORMED_REPLY,
    "no-id": FailureReason.MALFORMED_REPLY,
    "evil-id": FailureReason.MALFORMED_REPLY,
    "rejected": FailureReason.REQUEST_REJECTED,
    "key-rejected": FailureReason.KEY_REJECTED,
    "forbidden": FailureReason.REQUEST_REJECTED,
    "lost": FailureReason.REQUEST_REJECTED,
    "failed": FailureReason.REFUSED,
    "stuck": FailureReason.OUT_OF_TIME,
    "poll-html": FailureReason.MALFORMED_REPLY,
    "poll-huge": FailureReason.REPLY_TOO_LARGE,
    "half": FailureReason.CONNECTION_LOST,
    "announced": FailureReason.TOO_LARGE,
    "flood": FailureReason.TOO_LARGE,
    "drip": FailureReason.OUT_OF_TIME,
    "html": FailureReason.MALFORMED_REPLY,
    "json-clip": FailureReason.MALFORMED_REPLY,
    "empty": FailureReason.EMPTY_REPLY,
    "gzip": FailureReason.MALFORMED_REPLY,
    "to-loopback": FailureReason.NOT_NAMED,
    "to-metadata": FailureReason.NOT_NAMED,
    "to-itself": FailureReason.NOT_NAMED,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_brief_ends_as_a_clip_or_a_failure_with_its_reason(
    fault: str, shared: FaultService, tmp_path: Path
) -> None:
    started_s = time.monotonic()
    outcome = made_at(shared, fault, tmp_path)
    expected = OUTCOMES[fault]
    if expected is None:
        assert isinstance(outcome, GeneratedClip), outcome
        assert outcome.file.read_bytes().endswith(CLIP)
        assert outcome.file.parent == desk(tmp_path).folder
    else:
        assert isinstance(outcome, Failure)
        assert outcome.reason is expected, outcome
        assert outcome.detail
        assert outcome.detail.isprintable()
        held = [path for path in desk(tmp_path).folder.iterdir() if path.name == "clip.mp4"]
        assert all(path.stat().st_size <= 1 << 20 for path in held)
    assert time.monotonic() - started_s < 20 * slowness()
    assert shared.trapped == []
    assert len(shared.books[fault].jobs) <= 1


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/v1", "http://[fe80::1]/v1", "http://0.0.0.0:1/v1"]
)
def test_no_service_is_asked_at_an_address_of_the_link(url: str, tmp_path: Path) -> None:
    creator = creator_at(url)
    outcome = make(creator, lambda: creator.make(brief(), desk(tmp_path)))
    assert isinstance(outcome, Failure)
    assert outcome.reason is FailureReason.NOT_NAMED


def test_a_clip_tells_how_it_came_about_and_what_it_cost(
    service: FaultService, tmp_path: Path
) -> None:
    outcome = made_at(service, "good", tmp_path, usd_per_clip="0.1", usd_per_second="0.25")
    assert isinstance(outcome, GeneratedClip)
    assert outcome.model == "v9"
    assert outcome.cost_usd == Decimal("0.60")
    assert outcome.parameters["size"] == "192x128"
    assert outcome.parameters["seconds"] == 2
    assert "submitted_again" not in outcome.parameters
    form = service.books["good"].form
    assert form["prompt"] == b"A ball crosses the picture."
    assert form["input_reference"].startswith(b"\x89PNG")
    assert (form["seed"], form["seconds"], form["model"]) == (b"7", b"2", b"m")
    assert form["size"] == b"192x128"


def test_a_lost_reply_is_asked_for_under_the_same_key_and_told(
    service: FaultService, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outcome = made_at(service, "submit-lost", tmp_path)
    assert isinstance(outcome, GeneratedClip)
    assert service.books["submit-lost"].posts == 2
    assert len(service.books["submit-lost"].jobs) == 1
    assert outcome.parameters["submitted_again"] is True
    assert "submitted again" in caplog.text


def test_a_job_that_failed_is_submitted_anew_and_one_that_is_stuck_is_not(
    service: FaultService, tmp_path: Path
) -> None:
    for _ in range(2):
        made_at(service, "failed", tmp_path / "failed")
        made_at(service, "stuck", tmp_path / "stuck", deadline_s=0.5, attempt_s=0.3)
    assert len(service.books["failed"].jobs) == 2
    assert len(service.books["stuck"].jobs) == 1


@pytest.mark.parametrize(
    ("caps", "n_made"),
    [({"max_clips": 2}, 2), ({"max_cost_usd": "0.5", "usd_per_second": "0.1"}, 2)],
)
def test_a_budget_is_kept_with_many_jobs_at_once(
    service: FaultService, tmp_path: Path, caps: dict[str, Any], n_made: int
) -> None:
    creator = creator_at(service.url("good"), **caps)

    async def all_of_them() -> list[GeneratedClip | Failure]:
        asked = [creator.make(brief(i), desk(tmp_path, str(i))) for i in range(5)]
        return await asyncio.gather(*asked)

    outcomes = make(creator, all_of_them)
    spent = [each for each in outcomes if isinstance(each, Failure)]
    assert len(outcomes) - len(spent) == n_made == service.books["good"].posts
    assert {each.reason for each in spent} == {FailureReason.BUDGET_SPENT}


def test_a_refused_submit_costs_nothing(service: FaultService, tmp_path: Path) -> None:
    creator = creator_at(service.url("rejected"), max_clips=1)

    async def twice() -> list[GeneratedClip | Failure]:
        return [await creator.make(brief(i), desk(tmp_path, str(i))) for i in range(2)]

    reasons = [each.reason for each in make(creator, twice)]
    assert reasons == [FailureReason.REQUEST_REJECTED] * 2


def test_a_key_goes_only_where_the_environment_says_and_is_never_shown(
    service: FaultService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIDEO_KEY", SECRET)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another")
    made_at(service, "good", tmp_path / "a")
    assert "authorization" not in service.books["good"].headers
    host = service.url("").removeprefix("http://").partition("/")[0]
    creator = creator_at(service.url("key-rejected"), key_hosts=f"{host}=VIDEO_KEY")
    outcome = make(creator, lambda: creator.make(brief(), desk(tmp_path)))
    assert service.books["key-rejected"].headers["authorization"] == f"Bearer {SECRET}"
    assert isinstance(outcome, Failure)
    assert "[key]" in outcome.detail
    assert SECRET not in repr((outcome, creator))


def test_a_key_never_travels_in_clear() -> None:
    keys = EndpointCreatorConfig(url="http://video.example.org/v1")
    with pytest.raises(InvalidSettingError, match="in clear"):
        keys.contact("video.example.org")


KILLED = """
import asyncio, sys
from pathlib import Path
from creators.test_endpoint import brief, creator_at, desk
creator = creator_at({url!r}, deadline_s=30.0)
async def main():
    made = [creator.make(brief(i), desk(Path({folder!r}), str(i))) for i in range(3)]
    print(*[type(each).__name__ for each in await asyncio.gather(*made)], flush=True)
    await creator.close()
asyncio.run(main())
"""


def test_a_run_killed_between_submit_and_done_polls_and_pays_nothing_twice(
    service: FaultService, tmp_path: Path
) -> None:
    service.hold.set()
    code = KILLED.format(url=service.url("good"), folder=str(tmp_path))
    told = os.environ | {"PYTHONPATH": str(TESTS)}  # noqa: TID251  the tests' own environment
    for _ in range(2):
        run = subprocess.Popen([sys.executable, "-c", code], env=told)
        polls = service.books["good"].polls
        before = sum(polls.values())
        until_s = time.monotonic() + 60
        while sum(polls.values()) < before + 6 and time.monotonic() < until_s:
            time.sleep(0.02)
        run.send_signal(signal.SIGKILL)
        assert run.wait() == -signal.SIGKILL
        assert len(service.books["good"].jobs) == 3
    service.hold.clear()
    ended = subprocess.run(
        [sys.executable, "-c", code], env=told, check=True, capture_output=True, text=True
    )
    assert ended.stdout.split() == ["GeneratedClip"] * 3
    assert (service.books["good"].posts, len(service.books["good"].jobs)) == (3, 3)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"url": "http://user:pw@host/v1"}, "plain letters"),
        ({"max_cost_usd": "1"}, "usd_per_clip"),
        ({"attempt_s": 9.0}, "deadline_s"),
        ({"sizes": ["big"]}, "sizes"),
        ({"seconds": [0]}, "seconds"),
        ({"polls": 3}, "poll_s"),
    ],
)
def test_what_a_recipe_gets_wrong_is_said_with_what_to_write(
    keys: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        creator_at(**{"url": "http://127.0.0.1:9/v1", **keys})


def test_the_nearest_size_and_the_shortest_sufficient_length_are_requested(
    service: FaultService, tmp_path: Path
) -> None:
    offered = {"sizes": ["720x1280", "1280x720"], "seconds": [8, 4]}
    outcome = made_at(service, "good", tmp_path, **offered)
    assert isinstance(outcome, GeneratedClip)
    assert (outcome.parameters["size"], outcome.parameters["seconds"]) == ("1280x720", 4)
    form = service.books["good"].form
    assert (form["size"], form["seconds"]) == (b"1280x720", b"4")
    with Image.open(io.BytesIO(form["input_reference"])) as picture:
        assert picture.size == (1280, 720)
