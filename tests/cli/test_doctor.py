"""`unreel doctor` tells what is wrong and what to do."""

import json
import socket
from dataclasses import replace
from importlib.metadata import requires

import pytest

from unreel.api.installation import BRINGS, ModelProviderStatus


def test_extras_are_named_with_what_they_bring(run) -> None:
    shown = run("doctor").stdout
    declared = {
        line.rpartition("==")[2].strip(" '\"")
        for line in requires("unreel") or ()
        if "extra" in line
    }
    for extra in declared:
        assert f"unreel[{extra}]" in shown
    assert set(json.loads(run("doctor", "--json").stdout)["extras"]) == declared
    assert all(words in shown for extra, words in BRINGS.items() if extra in declared)


def test_a_store_that_is_configured_is_knocked_at(run, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        endpoint = f"http://127.0.0.1:{door.getsockname()[1]}"
        monkeypatch.setenv("UNREEL_S3_ENDPOINT", endpoint)
        assert f"yes  {endpoint}" in run("doctor").stdout


def test_keys_are_told_by_their_names_and_never_shown(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-4f0c9e-never-shown")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    shown, told = run("doctor").stdout, run("doctor", "--json").stdout
    assert "yes  anthropic: a key in ANTHROPIC_API_KEY" in shown
    assert "no   openai: a key in OPENAI_API_KEY" in shown
    assert "sk-4f0c9e" not in shown + told
    ways = {way["provider"]: way for way in json.loads(told)["providers"]}
    assert ways["anthropic"]["has_key"]
    assert ways["ollama"]["address"] == "http://127.0.0.1:11434/v1"
    assert "compatible" not in ways


def test_a_local_server_is_told_with_its_models_as_they_are_typed() -> None:
    way = ModelProviderStatus(
        provider="vllm",
        variable="VLLM_API_KEY",
        has_key=False,
        address="http://127.0.0.1:8000/v1",
        answers=True,
        models=("tiny", "org/large"),
    )
    assert way.is_open
    offers = "vllm: a server at http://127.0.0.1:8000/v1 offers vllm/tiny, vllm/org/large"
    assert str(way) == offers
    assert str(replace(way, models=())).endswith("answers, and lists no models without a key")
    assert str(replace(way, answers=False)) == "vllm: a server at http://127.0.0.1:8000/v1"
