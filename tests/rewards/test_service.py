"""The HTTP service in process: items, failures, cache, tokens, limits, deadlines, comparisons, maps."""

import asyncio
import base64
import hashlib
import io
import json
import os
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from scripted import ScriptedReviewer
from unreel.core.answer import Reply
from unreel.core.failure import Failure, FailureReason
from unreel.reviewers.contract import ReviewRequest
from unreel.rewards.guards.training_steps import TrainingStepCollector, iter_reward_log_rows
from unreel.rewards.service.app import create_reward_app
from unreel.rewards.service.settings import RewardServiceSettings
from unreel.webapp.tokens import TokenSettings

Clips = Callable[[int], bytes]


@asynccontextmanager
async def serving(
    tmp_path: Path, reviewer: Any, headers: dict[str, str] | None = None, **settings: Any
) -> AsyncIterator[httpx.AsyncClient]:
    given = {"store": str(tmp_path / "cache.sqlite"), "trusted": True, **settings}
    app = create_reward_app(RewardServiceSettings(models=[reviewer], **given))
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:8060", headers=headers, timeout=60
        ) as client:
            client.service = app.state.service  # type: ignore[attr-defined]
            yield client


def item(data: bytes, **fields: Any) -> dict[str, Any]:
    return {"video": {"data": base64.b64encode(data).decode()}, **fields}


def run(work: Any) -> Any:
    return asyncio.run(work)


def test_a_batch_keeps_its_order_and_a_broken_clip_is_null(
    tmp_path: Path, clip_bytes: Clips, scripted: ScriptedReviewer
) -> None:
    async def work() -> None:
        async with serving(tmp_path, scripted, trusted=False) as client:
            items = [item(clip_bytes(0), id="a"), item(b"broken", id="b"), item(clip_bytes(1))]
            reply = await client.post("/v1/rewards", json={"items": items})
            assert reply.status_code == 200, reply.text
            body = reply.json()
            assert body["formula"] == "reward@1"
            first, broken, last = body["results"]
            assert [r["id"] for r in body["results"]] == ["a", "b", None]
            assert first["value"] == last["value"] == pytest.approx(0.363, abs=1e-3)
            assert (broken["value"], broken["failure"]["reason"]) == (None, "format-refused")
            assert broken["map"] is None
            assert [v["protocol"] for v in first["verdicts"]] == ["trace", "realism"]
            npy = await client.get(first["map"])
            array = np.load(io.BytesIO(npy.content))
            assert array.dtype == np.float32
            assert array.mean() == pytest.approx(1 - first["parts"]["traced_volume"], abs=1e-5)
            assert len(npy.headers["x-unreel-instants-s"].split(",")) == len(array)
            assert (await client.get(f"/v1/rewards/{'0' * 32}/map")).status_code == 404

    run(work())


def test_a_retry_and_a_restart_ask_nobody_again(
    tmp_path: Path, clip_bytes: Clips, scripted: ScriptedReviewer
) -> None:
    async def work() -> None:
        for _ in range(2):
            async with serving(tmp_path, scripted) as client:
                body = {"items": [item(clip_bytes(0)), item(clip_bytes(0))]}
                replies = [(await client.post("/v1/rewards", json=body)).json() for _ in range(2)]
                assert replies[0] == replies[1]
        assert len(scripted.keys) == len(set(scripted.keys)) == 2

    run(work())


def test_all_forms_of_a_clip_are_accepted(
    tmp_path: Path, clip_bytes: Clips, scripted: ScriptedReviewer
) -> None:
    frames = np.random.default_rng(0).integers(0, 256, (4, 3, 33, 48)).astype(np.uint8)
    file = io.BytesIO()
    np.save(file, frames)
    header = json.dumps(
        {"x": {"dtype": "U8", "shape": frames.shape, "data_offsets": [0, frames.size]}}
    )
    tensors = len(header).to_bytes(8, "little") + header.encode() + frames.tobytes()
    root = tmp_path / "root"
    (root / "in").mkdir(parents=True)
    (root / "in" / "a.mp4").write_bytes(clip_bytes(0))
    arrays = [base64.b64encode(data).decode() for data in (file.getvalue(), tensors)]
    videos = [
        {"upload": "part"},
        {"path": str(root / "in" / "a.mp4")},
        *({"array": array, "fps": 8} for array in arrays),
    ]

    async def work() -> None:
        async with serving(tmp_path, scripted, protocols=["reality"], roots=(root,)) as client:
            request = json.dumps({"items": [{"video": video} for video in videos]})
            reply = await client.post(
                "/v1/rewards", data={"request": request}, files={"part": clip_bytes(0)}
            )
            assert reply.status_code == 200, reply.text
            results = reply.json()["results"]
            assert [r["failure"] for r in results] == [None] * 4
            ids = [r["reward_id"] for r in results]
            assert ids[0] == ids[1] != ids[2] == ids[3]
        assert len(scripted.keys) == 2

    run(work())


def test_paths_outside_a_root_links_and_urls_are_refused(
    tmp_path: Path, clip_bytes: Clips, scripted: ScriptedReviewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    outside = tmp_path / "secret.mp4"
    outside.write_bytes(clip_bytes(0))
    (root / "link.mp4").symlink_to(outside)
    (root / "folder").symlink_to(tmp_path)
    paths = ["secret.mp4", "root/../secret.mp4", "root/link.mp4", "root/folder/secret.mp4"]
    videos: list[dict[str, str]] = [{"path": str(tmp_path / path)} for path in paths]
    videos += [{"path": "../secret.mp4"}, {"path": f"file://{outside}"}, {"path": "\0"}]
    urls = ["file:///etc/passwd", "http://127.0.0.1/", "https://169.254.169.254/", "x", "s3://b/k"]
    videos += [{"url": url} for url in urls]

    async def work() -> None:
        async with serving(tmp_path, scripted, roots=(root,)) as client:
            request = {"items": [{"video": video} for video in videos]}
            results = (await client.post("/v1/rewards", json=request)).json()["results"]
            reasons = [r["failure"]["reason"] for r in results]
            assert {r["value"] for r in results} == {None}
            assert reasons == ["not-a-file"] * 7 + ["not-named"] * 5
            assert all("secret" not in r["failure"]["message"] for r in results)
        here = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 443))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_keys: here)
        async with serving(tmp_path, scripted, hosts=("https://clips.example.org",)) as client:
            request = {"items": [{"video": {"url": "https://clips.example.org/a.mp4"}}]}
            (result,) = (await client.post("/v1/rewards", json=request)).json()["results"]
            assert result["failure"]["reason"] == "not-named", "an allowed name that leads here"
        assert scripted.keys == []

    run(work())


def test_malformed_requests_are_refused_with_a_reason(
    tmp_path: Path, scripted: ScriptedReviewer
) -> None:
    bomb = b"\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'fortran_order': False, 'shape': (99999, 3, 9999, 9999)}"
    pickled = b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"
    arrays = [base64.b64encode(data.ljust(128) + b"x").decode() for data in (bomb, pickled, b"no")]
    bodies: list[Any] = [
        {},
        {"items": []},
        {"items": [{"video": {}}]},
        {"items": [{"video": {"data": "!"}}]},
        {"items": [{"video": {"data": "", "path": "a"}}]},
        {"items": [{"video": {"upload": "absent"}}]},
        {"items": [item(b"")] * 65},
        {"items": [item(b"")], "deadline_s": -1},
        *({"items": [{"video": {"array": array, "fps": 8}}]} for array in arrays),
    ]

    async def work() -> None:
        async with serving(tmp_path, scripted) as client:
            for body in bodies:
                reply = await client.post("/v1/rewards", json=body)
                assert reply.status_code == 422, body
                assert reply.json()["error"]["reason"] == "invalid"
            assert (await client.post("/v1/rewards", content=b"x")).status_code == 415
            assert (
                await client.post("/v1/rewards:compare", json={"items": [item(b"")]})
            ).status_code == 422
            assert (await client.get("/absent")).json()["error"]["reason"] == "http"

    run(work())


def test_a_late_item_is_null_and_its_answer_serves_the_retry(
    tmp_path: Path, clip_bytes: Clips
) -> None:
    class SlowReviewer(ScriptedReviewer):
        async def answer(self, request: ReviewRequest) -> Reply | Failure:
            await asyncio.sleep(0.5)
            return await super().answer(request)

    slow = SlowReviewer()

    async def work() -> None:
        async with serving(tmp_path, slow) as client:
            body = {"items": [item(clip_bytes(0))], "deadline_s": 0.2}
            (late,) = (await client.post("/v1/rewards", json=body)).json()["results"]
            assert (late["value"], late["failure"]["reason"]) == (None, "out-of-time")
            body["deadline_s"] = 30
            (retried,) = (await client.post("/v1/rewards", json=body)).json()["results"]
            assert retried["value"] is not None
            assert len(slow.keys) == 2

    run(work())


def test_a_failure_is_asked_again_and_an_unreadable_answer_is_not(
    tmp_path: Path, clip_bytes: Clips
) -> None:
    lost = Failure(FailureReason.CONNECTION_LOST, "the server is away")
    reviewer = ScriptedReviewer(answers={"reality": lost})

    async def work() -> None:
        async with serving(tmp_path, reviewer, protocols=["reality"]) as client:
            body = {"items": [item(clip_bytes(0))]}
            expected = [(lost, "connection-lost"), ("perhaps", "malformed-reply")]
            for answer, reason in [*expected, expected[1]]:
                reviewer.answers["reality"] = answer
                (result,) = (await client.post("/v1/rewards", json=body)).json()["results"]
                assert (result["value"], result["failure"]["reason"]) == (None, reason)
            assert len(reviewer.keys) == 2

    run(work())


SECRETS = {"trainer": ("reward",), "all": ("reward", "compare", "metrics"), "slow": ("reward",)}
TOKENS = tuple(
    TokenSettings(
        name=name,
        sha256=hashlib.sha256(name.encode()).hexdigest(),
        scopes=scopes,  # type: ignore[arg-type]
        rate=0.5 if name == "slow" else 100,
        max_mb=0.001 if name == "slow" else None,
    )
    for name, scopes in SECRETS.items()
)


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {name}"}


def test_missing_wrong_and_narrow_tokens_are_refused(
    tmp_path: Path, clip_bytes: Clips, scripted: ScriptedReviewer
) -> None:
    async def work() -> None:
        async with serving(tmp_path, scripted, tokens=TOKENS) as client:
            body = {"items": [item(clip_bytes(0))]}
            for headers in ({}, bearer("other"), {"authorization": "trainer"}, bearer("\xff")):
                raw = {name: value.encode("latin-1") for name, value in headers.items()}
                reply = await client.post("/v1/rewards", json=body, headers=raw)  # type: ignore[arg-type]
                assert (reply.status_code, reply.headers["www-authenticate"]) == (401, "Bearer")
            narrow = await client.post("/v1/rewards:compare", json=body, headers=bearer("trainer"))
            assert (narrow.status_code, narrow.json()["error"]["reason"]) == (403, "forbidden")
            assert (await client.get("/metrics", headers=bearer("trainer"))).status_code == 403
            assert (await client.get("/metrics")).status_code == 401
            basic = await client.post("/v1/rewards", json=body, auth=("any", "trainer"))
            assert basic.status_code == 200
            wrong = await client.post("/v1/rewards", json=body, auth=("trainer", "any"))
            assert wrong.status_code == 401
            good = await client.post("/v1/rewards", json=body, headers=bearer("trainer"))
            assert good.json()["results"][0]["value"] is not None
            metrics = (await client.get("/metrics", headers=bearer("all"))).text
            assert 'unreel_reward_items_total{cached="false",outcome="value"} 1.0' in metrics
            assert "unreel_reward_questions 2.0" in metrics
            assert (await client.get("/health")).json()["rewards"]["unreel"][0] == "value"
            assert (await client.get("/ready")).status_code == 200

    run(work())


@pytest.mark.parametrize("origin", ["https://evil.example", "http://evil.example:8060", "null"])
def test_a_web_page_of_another_site_is_refused(
    tmp_path: Path, clip_bytes: Clips, scripted: ScriptedReviewer, origin: str
) -> None:
    """A browser on this machine would send its forms, and each of them costs a question."""

    async def work() -> None:
        body = {"items": [item(clip_bytes(0))]}
        async with serving(tmp_path, scripted) as client:
            reply = await client.post("/v1/rewards", json=body, headers={"origin": origin})
            assert (reply.status_code, reply.json()["error"]["reason"]) == (403, "cross-site")
            assert scripted.keys == []
            own = {"origin": "http://localhost:8060"}
            assert (await client.post("/v1/rewards", json=body, headers=own)).status_code == 200

    run(work())


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8060", "127.0.0.1.evil.example"])
def test_a_request_to_another_host_is_refused(
    tmp_path: Path, clip_bytes: Clips, scripted: ScriptedReviewer, host: str
) -> None:
    """A name that an attacker binds to this machine would let a web page read the replies."""

    async def work() -> None:
        async with serving(tmp_path, scripted) as client:
            body = {"items": [item(clip_bytes(0))]}
            reply = await client.post("/v1/rewards", json=body, headers={"host": host})
            assert (reply.status_code, reply.json()["error"]["reason"]) == (403, "foreign-host")
            assert (await client.get("/health", headers={"host": host})).status_code == 403
            assert scripted.keys == []

    run(work())


def test_no_page_of_the_service_loads_a_script(tmp_path: Path, scripted: ScriptedReviewer) -> None:
    async def work() -> None:
        async with serving(tmp_path, scripted) as client:
            assert (await client.get("/docs")).status_code == 404

    run(work())


@pytest.mark.parametrize(
    "array",
    [
        b"\x93NUMPY\x01\x00\x10\x00{'descr': '|u1', (",
        (n := b'{"x": {"dtype": "U8", "shape": [1e999], "data_offsets": [0, 0]}}')
        and len(n).to_bytes(8, "little") + n,
    ],
)
def test_a_damaged_array_is_an_invalid_request(
    tmp_path: Path, scripted: ScriptedReviewer, array: bytes
) -> None:
    async def work() -> None:
        video = {"array": base64.b64encode(array).decode(), "fps": 8}
        async with serving(tmp_path, scripted) as client:
            reply = await client.post("/v1/rewards", json={"items": [{"video": video}]})
            assert reply.status_code == 422, reply.text

    run(work())


def test_clips_that_a_killed_service_left_are_removed_at_the_next_start(
    tmp_path: Path, scripted: ScriptedReviewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left, alive, other = (tmp_path / f"unreel-reward-{n}-x" for n in ("4194303", os.getpid(), "a"))
    for folder in (left, alive, other):
        folder.mkdir()
        (folder / "clip.mp4").write_bytes(b"clip")

    async def work() -> None:
        async with serving(tmp_path, scripted):
            assert [folder.exists() for folder in (left, alive, other)] == [False, True, True]

    run(work())


def test_size_rate_and_room_are_limited(
    tmp_path: Path, clip_bytes: Clips, scripted: ScriptedReviewer
) -> None:
    async def work() -> None:
        body = {"items": [{"video": {"path": "a"}}]}
        async with serving(tmp_path, scripted, tokens=TOKENS) as client:
            replies = [
                await client.post("/v1/rewards", json=body, headers=bearer("slow"))
                for _ in range(2)
            ]
            assert [reply.status_code for reply in replies] == [200, 429]
            assert int(replies[1].headers["retry-after"]) >= 1
            large = await client.post(
                "/v1/rewards", json={"items": [item(b"x" * 2000)]}, headers=bearer("slow")
            )
            assert large.status_code == 413
            huge = {"content-length": str(10 << 30), **bearer("all")}
            assert (await client.post("/v1/rewards", content=b"", headers=huge)).status_code == 413
        async with serving(tmp_path, scripted, max_request_bytes=1000) as client:

            async def pieces() -> AsyncIterator[bytes]:
                for _ in range(10):
                    yield b" " * 200

            reply = await client.post(
                "/v1/rewards", content=pieces(), headers={"content-type": "application/json"}
            )
            assert reply.status_code == 413, "a body without a length"
        async with serving(tmp_path, scripted, max_pending=0) as client:
            reply = await client.post("/v1/rewards", json=body)
            assert (reply.status_code, reply.headers["retry-after"]) == (429, "1")
            client.service.stop_reason = "the held-out reward falls"  # type: ignore[attr-defined]
            reply = await client.post("/v1/rewards", json=body)
            assert (reply.status_code, reply.json()["error"]["message"]) == (
                503,
                "the held-out reward falls",
            )
            assert (await client.get("/ready")).status_code == 503

    run(work())


def test_a_slow_upload_ends(tmp_path: Path, scripted: ScriptedReviewer) -> None:
    async def trickle() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(30)

    async def work() -> None:
        async with serving(tmp_path, scripted, upload_s=0.3) as client:
            reply = await client.post(
                "/v1/rewards", content=trickle(), headers={"content-type": "application/json"}
            )
            assert (reply.status_code, reply.json()["error"]["reason"]) == (408, "slow-upload")

    run(work())


def test_a_group_is_compared_in_both_orders(tmp_path: Path, clip_bytes: Clips) -> None:
    contents = [hashlib.sha256(clip_bytes(seed)).hexdigest() for seed in range(3)]

    def prefer(request: ReviewRequest) -> Reply | Failure:
        """Prefer the clip of the lower seed; the last clip cannot be compared with the first."""
        places = [contents.index(exhibit.clip.id) for exhibit in request.inputs]
        if set(places) == {0, 2}:
            return Reply(text="I cannot decide at all")
        return Reply(text=f"<answer>{1 + (places[0] > places[1])}</answer>")

    reviewer = ScriptedReviewer(act=prefer)

    async def work() -> None:
        async with serving(tmp_path, reviewer) as client:
            items = [item(clip_bytes(seed), id=str(seed)) for seed in range(3)]
            body = (await client.post("/v1/rewards:compare", json={"items": items})).json()
        found = [(c["first"], c["second"], c["preferred"]) for c in body["comparisons"]]
        assert found == [(0, 1, "first"), (0, 2, None), (1, 2, "first")]
        assert body["comparisons"][1]["failure"]["reason"] == "malformed-reply"
        assert [(r["value"], r["n_compared"]) for r in body["results"]] == [
            (1, 1),
            (0.5, 2),
            (0, 1),
        ]
        assert len(set(reviewer.keys)) == 6

    run(work())


def test_a_reviewer_that_always_takes_the_first_clip_gives_a_tie(
    tmp_path: Path, clip_bytes: Clips, scripted: ScriptedReviewer
) -> None:
    async def work() -> None:
        async with serving(tmp_path, scripted) as client:
            items = [item(clip_bytes(seed)) for seed in range(2)]
            body = (await client.post("/v1/rewards:compare", json={"items": items})).json()
        assert body["comparisons"] == [
            {"first": 0, "second": 1, "preferred": None, "failure": None}
        ]
        assert [r["value"] for r in body["results"]] == [0.5, 0.5]

    run(work())


def read_log(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_the_log_has_one_line_for_each_item_and_one_for_each_measured_clip(
    tmp_path: Path, clip_bytes: Clips, scripted: ScriptedReviewer
) -> None:
    log = tmp_path / "rewards.jsonl"
    other = ScriptedReviewer("other")
    other.answers["realism"] = "<answer>5</answer>"

    async def work() -> None:
        async with serving(tmp_path, scripted, log=log, held_out=[other]) as client:
            items = [item(clip_bytes(0), step=3, group="g"), item(b"broken", step=3)]
            for _ in range(2):
                await client.post("/v1/rewards", json={"items": items})

    run(work())
    (measured,) = (line for line in read_log(log) if "measured" in line)
    lines = [line for line in read_log(log) if "measured" not in line]
    assert len(lines) == 4
    fresh = next(line for line in lines if line["value"] is not None and not line["cached"])
    assert (fresh["step"], fresh["group"], fresh["failure"]) == (3, "g", None)
    assert measured["measured"] == fresh["reward_id"]
    assert measured["held_out"] > fresh["value"]
    assert fresh["content"] == hashlib.sha256(clip_bytes(0)).hexdigest()
    assert sum(line["cached"] for line in lines) == 1
    assert [line["failure"] for line in lines if line["value"] is None] == ["format-refused"] * 2


class GatedReviewer(ScriptedReviewer):
    """Reviewer that answers when `gate` is set."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.gate = threading.Event()

    async def answer(self, request: ReviewRequest) -> Reply | Failure:
        while not self.gate.is_set():
            await asyncio.sleep(0.02)
        return await super().answer(request)


def test_a_row_is_in_the_log_before_the_reply_and_its_facts_follow(
    tmp_path: Path, clip_bytes: Clips, scripted: ScriptedReviewer
) -> None:
    log, held_out = tmp_path / "rewards.jsonl", GatedReviewer("other")
    held_out.answers["realism"] = "<answer>5</answer>"

    async def work() -> None:
        async with serving(tmp_path, scripted, log=log, held_out=[held_out]) as client:
            body = {"items": [item(clip_bytes(0), step=1), item(clip_bytes(0), step=1)]}
            for n_rows in (2, 4):
                await client.post("/v1/rewards", json=body)
                rows = read_log(log)
                assert len(rows) == n_rows
                assert [row["held_out"] for row in rows] == [None] * n_rows
            collector = TrainingStepCollector()
            collector.add(read_log(log))
            held_out.gate.set()
            while len(read_log(log)) < 5:
                await asyncio.sleep(0.02)
            await client.post("/v1/rewards", json=body)
            collector.add([*read_log(log)[4:], {"step": 2}])
            (step,) = collector.finish()
            assert (step.n_paired, step.facts["duration"].n) == (2, 2)
            assert step.held_out is not None
            assert step.value is not None
            assert step.held_out > step.value
            assert read_log(log)[-1]["held_out"] == pytest.approx(step.held_out)

    run(work())


def test_a_reward_that_cannot_be_logged_is_refused_and_the_next_row_has_its_own_line(
    tmp_path: Path, clip_bytes: Clips, scripted: ScriptedReviewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "rewards.jsonl"

    async def work() -> None:
        async with serving(tmp_path, scripted, log=log) as client:
            body = {"items": [item(b"broken")]}
            write = os.write
            with monkeypatch.context() as patch:
                patch.setattr(os, "write", lambda at, data: write(at, data[:20]))
                reply = await client.post("/v1/rewards", json=body)
            assert (reply.status_code, reply.json()["error"]["reason"]) == (503, "log")
            assert "No space left" in reply.json()["error"]["message"]
            assert (await client.post("/v1/rewards", json=body)).status_code == 200

    run(work())
    (row,) = iter_reward_log_rows(log)
    assert row["failure"] == "format-refused"


@pytest.mark.parametrize("limit", ["concurrency", "max_pending", "max_pending_mb"])
@pytest.mark.parametrize("path", ["rewards", "rewards:compare"])
def test_a_token_is_charged_until_its_work_ends(
    tmp_path: Path, clip_bytes: Clips, path: str, limit: str
) -> None:
    """A deadline ends the reply, but not the questions."""
    reviewer = GatedReviewer("slow")
    bodies = [
        {"items": [item(clip_bytes(seed)), item(clip_bytes(seed + 1))], "deadline_s": 0.5}
        for seed in (0, 4)
    ]
    most = {"concurrency": 1, "max_pending": 3, "max_pending_mb": 1.5e-6 * len(str(bodies[0]))}
    tokens = [
        TokenSettings(name=name, sha256=hashlib.sha256(name.encode()).hexdigest(), **settings)
        for name, settings in (
            ("a", {"scopes": ("reward", "compare"), limit: most[limit]}),
            ("b", {}),
        )
    ]

    async def work() -> None:
        async with serving(tmp_path, reviewer, tokens=tokens) as client:

            async def post(token: str, body: dict[str, Any], path: str = path) -> int:
                reply = await client.post(f"/v1/{path}", json=body, headers=bearer(token))
                return reply.status_code

            assert await post("a", bodies[0]) == 200
            assert await post("a", bodies[1]) == 429
            assert await post("b", bodies[1], "rewards") == 200
            reviewer.gate.set()
            until_s = time.monotonic() + 20
            while await post("a", bodies[1]) == 429:
                assert time.monotonic() < until_s
                await asyncio.sleep(0.05)

    run(work())
