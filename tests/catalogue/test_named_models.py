"""A reviewer by its name in the catalogue: stated facts become settings, and others do not."""

import base64
import json
import shlex
from email.message import Message
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from chat import says, serve_chat
from net.commands import call
from unreel.catalogue.entries import FactMark, find_named_checkpoint, list_models
from unreel.core.errors import InvalidSettingError, UnknownNameError, UnreadableSourceError
from unreel.protocols.protocol import get_protocol
from unreel.recipes.validation import validate_recipe_sections
from unreel.reviewers.condition_section import ConditionSection
from unreel.reviewers.config import ReviewerSection
from unreel.reviewers.endpoint.model_address import is_server_model, parse_model_address
from unreel.reviewers.endpoint.model_families import get_model_family
from unreel.reviewers.registry import REVIEWERS
from warm import Warm

URL = "http://127.0.0.1:8123/v1"
NAMED = [model for model in list_models() if find_named_checkpoint(model.name)]


@pytest.fixture
def run(tmp_path: Path, warm: Warm):
    return partial(warm.run, cwd=tmp_path)


def build(**values: Any) -> ReviewerSection:
    return validate_recipe_sections(ReviewerSection, values)


def test_no_name_is_that_of_a_baseline_or_a_plug_in() -> None:
    assert {model.name for model in list_models()} & {*REVIEWERS.names()} == set()


@pytest.mark.parametrize("model", NAMED, ids=lambda model: model.name)
def test_a_name_is_its_id_behind_vllm(model) -> None:
    for typed, url in ((model.name, "http://127.0.0.1:8000/v1"), (f"{model.name}@{URL}", URL)):
        address = parse_model_address(typed)
        assert is_server_model(typed)
        assert (address.provider, address.base_url) == ("vllm", url)
        assert (address.model,) == model.hub_ids.value


@pytest.mark.parametrize("model", NAMED, ids=lambda model: model.name)
def test_only_what_the_owner_states_or_was_measured_is_a_setting(model) -> None:
    section = build(model=model.name)
    condition = section.resolve(ConditionSection(), get_protocol("reality"))
    usual = ConditionSection().resolved(get_protocol("reality"))
    for value, default, fact in (
        (section.max_tokens, 2048, model.max_tokens),
        (section.manner.temperature, 0.0, model.temperature),
        (condition.sampling, usual.sampling, model.sampling),
        (condition.max_pixels, None, model.max_pixels),
    ):
        is_stated = fact is not None and fact.mark in {FactMark.VERIFIED, FactMark.MEASURED}
        assert value == (fact.value if is_stated else default)


def test_a_third_partys_value_is_no_setting() -> None:
    facts = [fact for model in list_models() for _, fact in model.iter_facts()]
    third = [fact for fact in facts if fact.mark is FactMark.THIRD_PARTY]
    assert third
    assert [fact for fact in third if fact.setting is not None] == []


def test_a_named_checkpoint_has_the_family_of_its_base_and_the_frames_of_its_owner() -> None:
    section = build(model="skyra-rl")
    condition = section.resolve(ConditionSection(), get_protocol("locate"))
    assert get_model_family(str(section.family)).boxes == "model-input"
    assert (section.max_tokens, condition.sampling, condition.max_pixels) == (
        8192,
        "uniform-16",
        1003520,
    )


def test_what_the_user_writes_goes_first() -> None:
    section = build(model="skyra-rl", max_tokens=100, family="qwen3-vl")
    condition = section.resolve(ConditionSection(sampling="uniform-3"), get_protocol("reality"))
    assert (section.max_tokens, section.family) == (100, "qwen3-vl")
    assert condition.sampling == "uniform-3"


def test_an_address_with_the_same_id_is_asked_as_before() -> None:
    section = build(model=f"vllm/JoeLeelyf/Skyra-RL@{URL}")
    condition = section.resolve(ConditionSection(), get_protocol("reality"))
    assert (section.max_tokens, section.family) == (2048, None)
    assert condition == ConditionSection().resolved(get_protocol("reality"))


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("skyra-r", "Did you mean 'skyra-rl'"),
        ("videoveritas", "has no id on the Hugging Face hub, or several"),
        ("unifiedreward-2.0", "has no id on the Hugging Face hub, or several"),
        ("con", "Did you mean 'coin'"),
    ],
)
def test_a_name_that_leads_to_no_model_is_refused(typed: str, words: str) -> None:
    with pytest.raises((InvalidSettingError, UnknownNameError)) as raised:
        build(model=typed)
    assert words in str(raised.value)


def test_a_server_is_asked_with_the_id_and_the_settings_of_the_entry(run, tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = []

    def reply(body: bytes, _headers: Message) -> tuple[int, Any]:
        asked.append(json.loads(body))
        return says("<answer>0</answer>")

    run("benchmarks", "example", "list", "--out", "mine")
    with serve_chat(reply) as port:
        done = run(
            *("eval", "mine/clips.csv", "--protocol", "reality", "--out", "r"),
            *("--model", f"skyra-rl@http://127.0.0.1:{port}/v1"),
        )
    assert done.returncode == 0, done.stderr
    assert "skyra-rl is asked with unreel's prompt, not with its owner's" in done.stderr
    assert {body["model"] for body in asked} == {"JoeLeelyf/Skyra-RL"}
    assert {body.get("max_tokens") for body in asked} == {8192}
    parts = [part for message in asked[0]["messages"] for part in message["content"]]
    images = [part for part in parts if isinstance(part, dict) and part["type"] == "image_url"]
    assert len(images) == 16
    assert base64.b64decode(images[0]["image_url"]["url"].partition(",")[2])


@pytest.mark.parametrize("name", ["skyra-sft", "cosmos-reason2-8b", "qwen2.5-vl-7b"])
def test_serve_prints_the_command_for_a_name_and_the_option_to_ask_it(run, name: str) -> None:
    done = run("serve", name, "--dry-run", "--port", "8123")
    assert done.returncode == 0, done.stderr
    typed = shlex.split(done.stdout)
    entry = find_named_checkpoint(name)
    assert typed[:3] == ["vllm", "serve", entry.hub_ids.value[0]]
    assert [*(entry.serve.value if entry.serve else ())] == typed[
        len(typed) - len(entry.serve.value if entry.serve else ()) :
    ]
    assert "--trust-remote-code" not in typed
    assert f"--model {name}@http://127.0.0.1:8123/v1" in done.stderr
    assert "the revision of" in done.stderr


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (("skyra-rl",), "has no vLLM"),
        (("skyra-rl", "--adapter", "a=b"), "has no vLLM"),
        (("deeptrace-reward", "--dry-run"), "how vLLM serves deeptrace-reward is not stated"),
        (("visionreward-video", "--dry-run"), "how vLLM serves visionreward-video is not stated"),
        (("videoveritas", "--dry-run"), "has no id on the Hugging Face hub, or several"),
        (("skyra-rl", "--dry-run", "--host", "0.0.0.0"), "VLLM_API_KEY"),
    ],
)
def test_serve_refuses_what_it_cannot_serve(run, typed: tuple[str, ...], words: str) -> None:
    done = run("serve", *typed)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("model", list_models(), ids=lambda model: model.name)
def test_a_dry_run_prints_the_command_of_an_entry_or_why_there_is_none(model) -> None:
    done = call("serve", model.name, "--dry-run", "--port", "8123")
    if done.exception is not None:
        assert isinstance(done.exception, InvalidSettingError | UnreadableSourceError)
        assert not (model.serve and model.serve.setting and find_named_checkpoint(model.name))
        return
    typed = shlex.split(done.stdout)
    assert typed[:3] == ["vllm", "serve", *model.hub_ids.value]
    flags = [*((model.serve and model.serve.setting) or ())]
    assert typed[len(typed) - len(flags) :] == flags
    if model.max_length and model.max_length.setting:
        assert typed[typed.index("--max-model-len") + 1] == str(model.max_length.value)
    if model.revision and model.revision.setting:
        assert typed[typed.index("--revision") + 1] == model.revision.value


def test_no_entry_runs_code_of_a_checkpoint() -> None:
    served = [model.serve.value for model in list_models() if model.serve and model.serve.value]
    assert [part for arguments in served for part in arguments if "trust" in part] == []
