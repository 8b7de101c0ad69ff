"""Dialects in process: UniRL, Flow-Factory and pickles. A failure is an error and never a number."""

import asyncio
import base64
import builtins
import functools
import io
import math
import os
import pickle
import random
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from rewards.counting_service import (
    UNREADABLE,
    CountingReviewer,
    service_settings,
    small_clip,
    value_of,
)
from unreel.core.errors import InvalidValueError
from unreel.media.picture import encode_jpeg, encode_png
from unreel.rewards.service.app import create_reward_app
from unreel.rewards.trainers.pickled import parse_pickled_request, read_restricted_pickle

LOCAL, REMOTE = ("127.0.0.1", 50000), ("203.0.113.7", 50000)


@asynccontextmanager
async def serving(
    folder: Path, *dialects: str, peer: tuple[str, int] = LOCAL, **settings: Any
) -> AsyncIterator[tuple[httpx.AsyncClient, CountingReviewer]]:
    reviewer = CountingReviewer()
    app = create_reward_app(service_settings(folder, reviewer, dialects=dialects, **settings))
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app=app, client=peer)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:8060", timeout=60
        ) as client:
            yield client, reviewer


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def frames(n_frames: int, side: int = 16) -> list[np.ndarray]:
    draw = np.random.default_rng(n_frames)
    return [draw.integers(0, 256, (side, side, 3), np.uint8) for _ in range(n_frames)]


def test_unirl_gets_the_headline_first_and_errors_without_numbers(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.mp4").write_bytes(small_clip(3))
    turns = [
        {"text": "p", "video_b64": encode(small_clip(2))},
        {"text": "p", "video_path": str(root / "a.mp4")},
        {"text": "p", "video_b64": encode(small_clip(UNREADABLE))},
        {"text": "p", "video_b64": encode(b"no video")},
        {"text": "p", "video_b64": "%%%"},
        {"text": "p", "image_b64": encode(b"x")},
        {"text": "p", "video_path": str(tmp_path / "outside.mp4")},
    ]
    queries = [{"history": [turn], "required_rewards": ["unreel"]} for turn in turns]

    async def work() -> None:
        async with serving(tmp_path, "unirl", roots=(root,)) as (client, _):
            health = (await client.get("/health")).json()
            assert health["status"] == "ok"
            assert "unreel" in health["rewards"]
            reply = await client.post("/score", json={"requests": queries})
            body = reply.json()
            assert [set(result) for result in body["results"]] == [{"unreel"}] * 2 + [set()] * 5
            assert [set(error) for error in body["errors"]] == [set()] * 2 + [{"unreel"}] * 5
            for n_frames, result in zip((2, 3), body["results"], strict=False):
                metrics = result["unreel"]
                assert next(iter(metrics)) == "reward"
                assert metrics["reward"] == value_of(n_frames)
                assert all(math.isfinite(each) for each in metrics.values())
            queries[0]["required_rewards"] = ["hpsv3"]
            assert (await client.post("/score", json={"requests": queries})).status_code == 400
            assert (await client.post("/score", content=b"{")).status_code == 422
            assert (await client.post("/score", json={"requests": []})).json()["results"] == []
            many = [{**queries[1], "required_rewards": ["unreel"]}] * 65
            assert (await client.post("/score", json={"requests": many})).status_code == 422

    asyncio.run(work())


def test_a_dialect_is_off_unless_it_is_named(tmp_path: Path) -> None:
    async def work() -> None:
        async with serving(tmp_path) as (client, _):
            for path in ("/score", "/fps/8/compute", "/pickle"):
                assert (await client.post(path, json={})).status_code == 404

    asyncio.run(work())


@pytest.mark.parametrize("trusted", [False, True])
def test_flow_factory_gets_rewards_of_all_frames_or_an_error(
    tmp_path: Path, *, trusted: bool
) -> None:
    videos = [[encode(encode_png(each)) for each in frames(n_frames)] for n_frames in (2, 3)]

    async def work() -> None:
        async with serving(tmp_path, "flow-factory", trusted=trusted) as (client, reviewer):
            assert (await client.get("/fps/16/health")).json()["status"] == "ok"
            body = {"prompt": ["a", "b"], "image": None, "video": videos}
            reply = await client.post("/fps/16/compute", json=body)
            assert reply.json() == {"rewards": [value_of(2), value_of(3)]}
            assert sorted(reviewer.seen) == [(2, Fraction(16)), (3, Fraction(16))]
            assert (await client.post("/compute", json=body)).status_code == 422
            mixed = [encode(encode_png(frames(1, side)[0])) for side in (16, 8)]
            for video in ([encode(b"\x89PNG\r\n")], [], ["%%%"], mixed):
                reply = await client.post(
                    "/fps/16/compute", json={**body, "video": [videos[0], video]}
                )
                assert reply.status_code == 422, reply.text
                assert "rewards" not in reply.json()
            shorter = {**body, "prompt": ["a"]}
            assert (await client.post("/fps/16/compute", json=shorter)).status_code == 422
            many = {"prompt": ["a"] * 65, "video": [videos[0]] * 65}
            assert (await client.post("/fps/16/compute", json=many)).status_code == 422
            unreadable = [encode(encode_png(each)) for each in frames(UNREADABLE)]
            failing = {"prompt": ["a"], "video": [unreadable]}
            reply = await client.post("/fps/16/compute", json=failing)
            assert reply.status_code == 503
            assert reply.json()["error"]["reason"] == "malformed-reply"

    asyncio.run(work())


def test_pictures_with_too_many_pixels_are_refused_before_they_take_memory(tmp_path: Path) -> None:
    empty = encode(encode_png(np.zeros((1000, 1000, 3), np.uint8)))
    body = {"prompt": ["a"], "video": [[empty] * 4]}

    async def work() -> None:
        settings = {"max_request_bytes": 10_000_000}
        async with serving(tmp_path, "flow-factory", **settings) as (client, _):
            reply = await client.post("/fps/16/compute", json=body)
            assert reply.status_code == 422
            assert "too-large" in reply.text

    asyncio.run(work())


def test_a_pickled_request_gets_scores_or_an_error(tmp_path: Path) -> None:
    jpeg = encode_jpeg(frames(1, 32)[0])
    payloads: list[dict[str, Any]] = [
        {"images": [jpeg], "prompts": ["a"], "metadata": {}},
        {"images": [jpeg, jpeg]},
        {"images": [jpeg, jpeg], "prompts": np.array(["a cat", "ein Bär"])},
    ]

    async def work() -> None:
        async with serving(tmp_path, "pickle") as (client, _):
            for payload in payloads:
                reply = await client.post("/pickle", content=pickle.dumps(payload, protocol=4))
                scores = [value_of(1)] * len(payload["images"])
                assert pickle.loads(reply.content) == {"scores": scores, "outputs": scores}
            bad = [{"images": [b"no picture"]}, {"images": [jpeg], "prompts": []}, {"images": []}]
            for payload in bad:
                reply = await client.post("/pickle", content=pickle.dumps(payload))
                assert reply.status_code == 422
                assert set(pickle.loads(reply.content)) == {"error"}

    asyncio.run(work())


def test_pickles_of_other_machines_need_the_remote_dialect(tmp_path: Path) -> None:
    payload = pickle.dumps({"images": [encode_jpeg(frames(1, 32)[0])]})

    async def work() -> None:
        async with serving(tmp_path, "pickle", peer=REMOTE) as (client, reviewer):
            reply = await client.post("/pickle", content=payload)
            assert reply.status_code == 403
            assert reviewer.seen == []
        async with serving(tmp_path, "pickle-remote", peer=REMOTE) as (client, _):
            assert (await client.post("/pickle", content=payload)).status_code == 200

    asyncio.run(work())


class Reduced:
    """Object whose pickle calls `function` with `arguments`."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.pair = (function, arguments)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.pair


def _global(module: str, name: str, rest: bytes) -> bytes:
    return b"\x80\x04c" + f"{module}\n{name}\n".encode() + rest


HOSTILE = {
    "system": pickle.dumps(Reduced(os.system, "exit 1")),
    "eval": pickle.dumps(Reduced(builtins.eval, "1")),
    "import": pickle.dumps(Reduced(builtins.__import__, "os")),
    "partial": pickle.dumps(functools.partial(print)),
    "class": pickle.dumps(OrderedDict(a=1)),
    "file": pickle.dumps(Reduced(io.open, "/etc/passwd")),
    "load": _global("numpy", "load", b"."),
    "dotted": b"\x80\x04\x8c\x05numpy\x8c\x0cndarray.dump\x93.",
    "scalar": pickle.dumps(np.float32(1)),
    "codec": pickle.dumps(b"\xff", protocol=2),
    "state of a global": _global("numpy", "dtype", b"}\x8c\x01a\x8c\x01bsb."),
    "new object": _global("numpy", "ndarray", b")\x81."),
    "instance": b"(inumpy\nndarray\n.",
    "extension": b"\x80\x02\x82\x01.",
    "persistent": b"\x80\x04\x8c\x01aQ.",
    "large memo": b"\x80\x04Nr\xff\xff\xff\x7f.",
    "long text": b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.",
    "byte array": b"\x80\x05\x96\xff\xff\xff\xff\xff\xff\x00\x00.",
    "frame": b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f.",
    "deep": b"\x80\x04)" + b"\x85" * 100_000 + b".",
    "empty": b"",
    "no pickle": b"GET / HTTP/1.1",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_pickle_with_another_global_or_operation_is_refused(name: str) -> None:
    with pytest.raises(InvalidValueError, match="pickle is refused"):
        read_restricted_pickle(HOSTILE[name])


def test_a_permitted_global_never_makes_an_object_of_numpy() -> None:
    for state in (
        (1, (1,), np.dtype("O"), False, [1]),
        (1, (2**40,), np.dtype("U1"), False, b""),
        (1, (2,), np.dtype([("a", "O")]), False, b"\x01" * 16),
    ):
        record = Reduced(np.empty(0).__reduce__()[0], np.ndarray, (0,), b"b")
        record.pair = (*record.pair, state)
        with pytest.raises(InvalidValueError, match="prompts"):
            parse_pickled_request(pickle.dumps({"images": [b"x"], "prompts": record}, protocol=4))


def test_damaged_pickles_are_read_or_refused() -> None:
    draw = random.Random(0)
    whole = pickle.dumps({"images": [b"x" * 9], "prompts": np.array(["a", "b"])}, protocol=4)
    for _ in range(1000):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        try:
            images, prompts = parse_pickled_request(bytes(data))
        except InvalidValueError:
            continue
        assert all(isinstance(each, bytes) for each in images)
        assert all(isinstance(each, str | None) for each in prompts)
