"""RayService of the rewards: its configuration of Ray Serve, and a clip scored through it."""

import asyncio
import hashlib
import time
from email.message import Message
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import httpx
import pytest
import yaml

pytest.importorskip("ray.serve", reason="Ray Serve is not installed")

from chat import Reply, says, serve_chat
from deploy.compose import ROOT
from reward_process import ask, free_port
from scripted import ANSWERS
from synthesise import ClipRecipe, synthesise
from unreel.core.errors import InvalidSettingError
from unreel.core.settings import override_environment
from unreel.engine.private_ray import connect_to_ray
from unreel.rewards.service.serving import PROXY_TIMEOUTS, build_reward_application

serve = import_module("ray.serve")
ray_api = import_module("ray.serve._private.api")
ray_schema = import_module("ray.serve.schema")
MANIFEST: dict[str, Any] = yaml.safe_load(
    (ROOT / "deploy" / "kubernetes" / "reward.yaml").read_text(encoding="utf-8")
)
CONFIG: dict[str, Any] = yaml.safe_load(MANIFEST["spec"]["serveConfigV2"])
(APPLICATION,) = CONFIG["applications"]
SECRET = "secret"


@pytest.fixture
def args(tmp_path: Path) -> dict[str, Any]:
    """Arguments of the manifest's application, with a file of tokens and a store in `tmp_path`."""
    tokens = tmp_path / "tokens.toml"
    digest = hashlib.sha256(SECRET.encode()).hexdigest()
    tokens.write_text(f'[[token]]\nname = "trainer"\nsha256 = "{digest}"\n', encoding="utf-8")
    store = str(tmp_path / "cache.sqlite")
    return {**APPLICATION["args"], "tokens": str(tokens), "store": store}


def test_the_configuration_has_only_known_keys() -> None:
    config = ray_schema.ServeDeploySchema.model_validate(CONFIG)
    assert config.model_dump(mode="json", exclude_unset=True) == CONFIG  # it ignores unknown keys


def test_the_configuration_names_the_deployment_of_a_real_application(args: dict[str, Any]) -> None:
    builder = resolve_name(APPLICATION["import_path"])
    application = ray_api.call_user_app_builder_with_args_if_necessary(builder, args)
    names = [deployment["name"] for deployment in APPLICATION["deployments"]]
    assert names == [application._bound_deployment.name]


def test_the_application_checks_its_arguments(args: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="replicas"):
        build_reward_application({**args, "replicas": 3})
    with pytest.raises(InvalidSettingError, match="--tokens"):
        build_reward_application({**args, "tokens": []})


def test_the_ray_service_publishes_the_port_of_the_configuration() -> None:
    assert (MANIFEST["apiVersion"], MANIFEST["kind"]) == ("ray.io/v1", "RayService")
    (group,) = MANIFEST["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    (container,) = group["template"]["spec"]["containers"]
    port = {"name": "serve", "containerPort": CONFIG["http_options"]["port"]}
    assert container["ports"] == [port]  # KubeRay searches for this name
    (deployment,) = APPLICATION["deployments"]
    assert deployment["num_replicas"] <= group["replicas"] * deployment["max_replicas_per_node"]
    mounted = container["volumeMounts"][0]["mountPath"]
    assert Path(APPLICATION["args"]["tokens"]).is_relative_to(mounted)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_configuration_serves_a_clip(args: dict[str, Any]) -> None:
    """Deploy the configuration on a private Ray, and score a clip through its proxy."""

    def answer(body: bytes, headers: Message) -> Reply:
        return says(ANSWERS["reality"])

    port = free_port()
    (deployment,) = APPLICATION["deployments"]
    local = {**deployment, "num_replicas": 1, "ray_actor_options": {"num_cpus": 0}}
    with serve_chat(answer) as chat:
        model = f"compatible/tiny@http://127.0.0.1:{chat}/v1"
        args |= {"models": [model], "protocols": ["reality"]}
        config = ray_schema.ServeDeploySchema.model_validate(
            {
                "http_options": {"host": "127.0.0.1", "port": port},
                "applications": [{**APPLICATION, "args": args, "deployments": [local]}],
            }
        )
        with override_environment(PROXY_TIMEOUTS), connect_to_ray():
            try:
                deploy(config)
                first, second = asyncio.run(score(f"http://127.0.0.1:{port}"))
            finally:
                serve.shutdown()
    assert first.status_code == 401
    (result,) = second.json()["results"]
    assert result["value"] is not None, result


def deploy(config: Any) -> None:
    """Deploy a configuration as `serve run` does, and wait until its application runs."""
    client = ray_api.serve_start(http_options=config.http_options.model_dump())
    client.deploy_apps(config)
    (application,) = config.applications
    while (
        status := serve.status().applications[application.name]
    ).status != ray_schema.ApplicationStatus.RUNNING:
        assert status.status is not ray_schema.ApplicationStatus.DEPLOY_FAILED, status.message
        time.sleep(0.5)


async def score(address: str) -> tuple[httpx.Response, httpx.Response]:
    """Send a clip without a token and with it."""
    clip = synthesise(ClipRecipe(n_frames=8))
    async with httpx.AsyncClient(base_url=address, timeout=60) as client:
        refused = await ask(client, clip)
        client.headers["authorization"] = f"Bearer {SECRET}"
        return refused, await ask(client, clip)
