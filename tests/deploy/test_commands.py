"""Commands in the Dockerfile, compose.yaml, systemd units and manifests: real commands with real options."""

import configparser
import json
import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest
import yaml

from deploy.compose import COMPOSE, ROOT, STAGES, read_service_command
from unreel.cli.main import unreel
from unreel.core.settings import read_environment_settings

UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
MANIFESTS = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
}


TARGETS = [name for name in STAGES if name != "base"]


def require_valid_command(words: list[str]) -> None:
    """Raise unless click accepts the words: names, numbers of values, choices, required options."""
    program, *rest = words
    assert program.rpartition("/")[2] == "unreel"
    command: click.Command = unreel
    context = click.Context(command)
    while True:
        values, rest, order = command.make_parser(context).parse_args(rest)
        for parameter in order:
            kind = parameter.type
            if isinstance(parameter, click.Option) and not isinstance(kind, click.Path):
                parameter.type_cast_value(context, values[parameter.name])
        missing = [
            each.name for each in command.params if each.required and not values.get(each.name)
        ]
        assert missing == [], f"{shlex.join(words)} lacks {missing}"
        if not isinstance(command, click.Group) or not rest:
            break
        found = command.get_command(context, rest[0])
        assert found is not None, f"no command {rest[0]}"
        command, context, rest = found, click.Context(found, parent=context), rest[1:]
    assert rest == [], f"{shlex.join(words)} has unknown words"


@pytest.mark.parametrize(
    "typed",
    ["unreel dseks", "unreel desk --hots x", "unreel reward serve", "unreel reward serve --model a b",
     "unreel reward serve --model a --engine dask", "unreel annotate up --port x"],
)  # fmt: skip
def test_the_check_finds_mistakes(typed: str) -> None:
    with pytest.raises((click.UsageError, AssertionError)):
        require_valid_command(shlex.split(typed))


@pytest.mark.parametrize("target", TARGETS)
def test_each_image_starts_a_real_command(target: str) -> None:
    entry, command = (json.loads(STAGES[target].last(word)) for word in ("ENTRYPOINT", "CMD"))
    require_valid_command(entry if command == ["--help"] and target == "cli" else [
        *entry, *(["--model", "m"] if command == ["--help"] else command)
    ])  # fmt: skip
    assert STAGES[target].last("USER") == "unreel"


def test_images_install_only_extras_that_exist() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert dockerfile.count("uv pip install -r /src/pyproject.toml --extra") == len(TARGETS)
    for extra in re.findall(r"--extra (\S+)", dockerfile):
        assert re.search(rf"(?m)^{extra} = \[", pyproject), extra


@pytest.mark.parametrize("target", ["base", *TARGETS])
def test_images_install_packages_by_hash_only(target: str) -> None:
    environment = dict(text.split("=", 1) for word, text in STAGES["base"].lines if word == "ENV")
    assert environment["UV_REQUIRE_HASHES"] == "1"
    commands = [
        command.strip()
        for word, text in STAGES[target].lines
        if word == "RUN"
        for command in text.split("&&")
    ]
    installs = [command for command in commands if "pip " in command]
    assert installs
    for command in installs:
        is_by_hash = "uv pip install" in command or "--require-hashes" in command
        assert is_by_hash or "--no-index" in command, command
        assert "require-hashes=" not in command
        for name in re.findall(r"/src/constraints/(\S+)", command):
            assert (ROOT / "constraints" / name).is_file(), name
    for path in environment["UV_CONSTRAINT"].strip('"').split():
        assert (ROOT / path.removeprefix("/src/")).is_file(), path


def test_images_of_others_are_named_by_their_digest() -> None:
    """No digest stands in the files: each release of Debian and PostgreSQL has its own."""
    assert {stage.parent for stage in STAGES.values()} == {"${BASE}", "base"}
    check = next(text for word, text in STAGES["base"].lines if word == "RUN")
    for base, status in (("debian:bookworm-slim", 1), (f"debian@sha256:{64 * '0'}", 0)):
        shell = subprocess.run(["sh", "-c", check], env={"BASE": base}, check=False)
        assert shell.returncode == status
    for name, service in COMPOSE["services"].items():
        image = service.get("image") or service["build"]["args"]["BASE"]
        assert re.fullmatch(r"\$\{\w+:\?\S+@sha256:DIGEST, see docs/deploy.md\}", image), name


SERVICES = [name for name, service in COMPOSE["services"].items() if "build" in service]


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_has_a_real_command_and_a_health_check(name: str) -> None:
    require_valid_command(read_service_command(name))
    service = COMPOSE["services"][name]
    assert service["healthcheck"]["test"][:2] == ["CMD", "curl"]
    read_environment_settings(service.get("environment", {}))
    exposed = STAGES[service["build"]["target"]].last("EXPOSE")
    assert f":{exposed}/" in service["healthcheck"]["test"][-1]


def test_services_beyond_loopback_are_published_on_loopback_only() -> None:
    ports = [
        port for name in COMPOSE["services"] for port in COMPOSE["services"][name].get("ports", ())
    ]
    assert len(ports) == 2
    assert all(port.startswith("127.0.0.1:") for port in ports)


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_is_confined(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["cap_drop"] == ["ALL"]
    assert service["read_only"] is True
    assert service["mem_limit"].endswith("g")
    assert service["restart"] == "unless-stopped"


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_each_unit_is_confined(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert {"NoNewPrivileges=yes", "CapabilityBoundingSet=", "ProtectSystem=strict"} <= {*lines}
    assert any(line.startswith("MemoryMax=") for line in lines)


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_each_unit_has_a_real_command(path: Path) -> None:
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str  # type: ignore[method-assign,assignment]
    unit.read(path)
    require_valid_command(shlex.split(unit["Service"]["ExecStart"]))
    assert not re.search(r"\$\{?UNREEL_", path.read_text()), (
        "unreel refuses unknown UNREEL_ variables"
    )


@pytest.mark.parametrize("name", ["curate", "eval"])
def test_each_ray_job_has_a_real_command(name: str) -> None:
    job = MANIFESTS[name]
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    words = shlex.split(job["spec"]["entrypoint"])
    require_valid_command(words)
    assert words[-2:] == ["--engine", "ray"]


@pytest.mark.parametrize("name", MANIFESTS)
def test_each_ray_cluster_has_the_pinned_ray(name: str) -> None:
    spec = MANIFESTS[name]["spec"]
    cluster = spec.get("rayClusterSpec") or spec["rayClusterConfig"]
    assert f"ray=={cluster['rayVersion']} " in (ROOT / "constraints" / "dev.txt").read_text()
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        assert group["template"]["spec"]["containers"]
    for group in cluster["workerGroupSpecs"]:
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
