"""Settings that are words, and the keys that open a store."""

from pathlib import Path

import pytest

from unreel.core.settings import (
    build_child_environment,
    override_environment,
    read_environment_settings,
    read_secret_variable,
    read_storage_options,
)


def test_our_own_address_goes_before_the_usual_variables() -> None:
    given = {
        "UNREEL_S3_ENDPOINT": "http://127.0.0.1:9000",
        "AWS_ENDPOINT_URL": "https://elsewhere.example",
        "AWS_ACCESS_KEY_ID": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
    }
    assert read_storage_options(read_environment_settings(given), given) == {
        "aws_endpoint": "http://127.0.0.1:9000",
        "aws_region": "us-east-1",
        "allow_http": "true",
        "aws_access_key_id": "k",
        "aws_secret_access_key": "s",
    }


def test_the_usual_variables_are_enough() -> None:
    given = {
        "AWS_ENDPOINT_URL_S3": "https://store.example",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_SESSION_TOKEN": "t",
    }
    assert read_storage_options(read_environment_settings(given), given) == {
        "aws_endpoint": "https://store.example",
        "aws_region": "eu-west-1",
        "aws_session_token": "t",
    }


def test_a_role_of_the_machine_is_asked_for_by_name() -> None:
    given = {"UNREEL_S3_ROLE": "1"}
    assert read_storage_options(read_environment_settings(given), given) == {
        "aws_skip_signature": "false"
    }


def test_a_child_process_inherits_what_is_known_to_hold_no_key() -> None:
    secret = dict.fromkeys(
        (
            *("FALSVC", "DATABASE_URL", "GITHUB_PAT", "OPENAI_CUSTOM_HEADERS", "OPENAI_API_KEY"),
            *("HTTPS_PROXY", "http_proxy", "ALL_PROXY", "UNREEL_KEY_HOSTS", "UNREEL_LEDGER"),
            *("PGPASSWORD", "HF_TOKEN", "VLLM_API_KEY", "LABEL_STUDIO_API_KEY", "PYTHONPATH"),
        ),
        "secret",
    )
    plain = {"PATH": "/bin", "LC_ALL": "C", "CUDA_VISIBLE_DEVICES": "0", "VLLM_PORT": "1"}
    assert build_child_environment({}, {}, environment=secret | plain) == plain
    kept = build_child_environment(
        {"PATH": "/usr/bin"}, {"TZ": "UTC"}, keep=frozenset({"VLLM_API_KEY"}), environment=secret
    )
    assert kept == {"PATH": "/usr/bin", "TZ": "UTC", "VLLM_API_KEY": "secret"}


def test_what_stays_here_lies_in_the_users_state_folder_or_in_ours() -> None:
    assert read_environment_settings({}).state_folder == Path.home() / ".local" / "state" / "unreel"
    usual = {"XDG_STATE_HOME": "/var/state"}
    assert read_environment_settings(usual).state_folder == Path("/var/state/unreel")
    assert read_environment_settings(usual | {"UNREEL_STATE": "here"}).state_folder == Path("here")


def test_what_is_lent_to_a_library_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNREEL_LENT", "before")
    monkeypatch.delenv("UNREEL_NEW", raising=False)
    with override_environment({"UNREEL_LENT": "during", "UNREEL_NEW": "during"}):
        assert (read_secret_variable("UNREEL_LENT"), read_secret_variable("UNREEL_NEW")) == (
            "during",
            "during",
        )
    assert (read_secret_variable("UNREEL_LENT"), read_secret_variable("UNREEL_NEW")) == (
        "before",
        None,
    )
