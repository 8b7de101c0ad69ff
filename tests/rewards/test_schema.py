"""The OpenAPI document against the service: no input gives a server error."""

import asyncio
import os
from collections import Counter
from pathlib import Path

import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings

from scripted import ScriptedReviewer
from unreel.rewards.service.app import create_reward_app
from unreel.rewards.service.settings import RewardServiceSettings

LOCAL = {"host": "127.0.0.1"}
N_EXAMPLES = 300 if os.environ.get("UNREEL_SLOW") else 15


def test_no_request_gives_a_server_error(tmp_path: Path) -> None:
    store = str(tmp_path / "cache.sqlite")
    dialects = ("unirl", "flow-factory", "pickle")
    models = [ScriptedReviewer()]
    app = create_reward_app(
        RewardServiceSettings(models=models, store=store, trusted=True, dialects=dialects)
    )
    statuses: Counter[int] = Counter()
    for found in schemathesis.openapi.from_asgi(
        "/openapi.json", app, headers=LOCAL
    ).get_all_operations():

        @given(case=found.ok().as_strategy())
        @settings(max_examples=N_EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
        def check(case: schemathesis.Case) -> None:
            status = case.call(headers=LOCAL).status_code
            statuses[status] += 1
            assert status < 500

        check()
    asyncio.run(app.state.service.close())
    print(f"statuses: {dict(statuses)}")
    assert {200, 422} <= {*statuses}


def test_an_absurd_step_is_refused_with_the_whole_request(tmp_path: Path) -> None:
    """Later steps close earlier ones, so one absurd step would exclude the rows of others."""
    settings_ = RewardServiceSettings(
        models=[ScriptedReviewer()], store=str(tmp_path / "cache.sqlite"), trusted=True
    )
    app = create_reward_app(settings_)
    with TestClient(app, client=("127.0.0.1", 50000), base_url="http://127.0.0.1") as client:
        for step in (2**53, 10_000_001, -1):
            body = {"items": [{"video": {"data": "AAAA"}, "step": step}]}
            assert client.post("/v1/rewards", json=body).status_code == 422
