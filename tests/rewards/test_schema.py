"""The OpenAPI document against the service: no input gives a server error."""

import os
from collections import Counter
from pathlib import Path

import schemathesis
from hypothesis import HealthCheck, given, settings

from scripted import ScriptedReviewer
from unreel.rewards.service.app import create_reward_app
from unreel.rewards.service.settings import RewardServiceSettings

N_EXAMPLES = 300 if os.environ.get("UNREEL_SLOW") else 15


def test_no_request_gives_a_server_error(tmp_path: Path) -> None:
    store = str(tmp_path / "cache.sqlite")
    dialects = ("unirl", "flow-factory", "pickle")
    models = [ScriptedReviewer()]
    app = create_reward_app(
        RewardServiceSettings(models=models, store=store, trusted=True, dialects=dialects)
    )
    statuses: Counter[int] = Counter()
    for found in schemathesis.openapi.from_asgi("/openapi.json", app).get_all_operations():

        @given(case=found.ok().as_strategy())
        @settings(max_examples=N_EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
        def check(case: schemathesis.Case) -> None:
            status = case.call().status_code
            statuses[status] += 1
            assert status < 500

        check()
    app.state.service.close()
    print(f"statuses: {dict(statuses)}")
    assert {200, 422} <= {*statuses}
