"""The OpenAPI document against the service: no input gives a server error."""

import os
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from scripted import ScriptedReviewer
from unreel.rewards.service.app import create_app
from unreel.rewards.service.settings import ServiceSettings

N_EXAMPLES = 300 if os.environ.get("UNREEL_SLOW") else 15


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> object:
    folder = tmp_path_factory.mktemp("schema")
    app = create_app(
        ServiceSettings(
            models=[ScriptedReviewer()], store=str(Path(folder) / "cache.sqlite"), trusted=True
        )
    )
    return schemathesis.openapi.from_asgi("/openapi.json", app)


schema = schemathesis.pytest.from_fixture("api")


@schema.parametrize()
@settings(
    max_examples=N_EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
def test_no_request_gives_a_server_error(case: schemathesis.Case) -> None:
    reply = case.call_and_validate(checks=[schemathesis.checks.not_a_server_error])
    assert reply.status_code < 500
