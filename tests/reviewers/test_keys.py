"""Whose key goes where: what an address in a stranger's recipe can and cannot obtain."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from unreel.core.answer import Reply
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure
from unreel.core.retry import RetryPolicy
from unreel.reviewers.contract import ReviewRequest
from unreel.reviewers.endpoint.model_address import PROVIDERS, parse_model_address
from unreel.reviewers.endpoint.reviewer import EndpointLimits, EndpointReviewer
from unreel.reviewers.endpoint.servers import find_model_endpoint
from unreel.testing.reviewers import run

SECRET = "sk-4f0c9e-never-shown"
KEYS = {p.key_variable: f"{SECRET}-{name}" for name, p in PROVIDERS.items() if p.key_variable}
QUICK = EndpointLimits(
    patience=RetryPolicy(deadline_s=1, attempt_s=0.5, backoff_s=0.02, outage_s=0.2)
)
MakeSheet = Callable[..., ReviewRequest]

ELSEWHERE = [
    "openai/gpt-5@http://203.0.113.7/v1",
    "openai/gpt-5@https://203.0.113.7/v1",
    "openai/gpt-5@http://api.openai.com/v1",
    "openai/gpt-5@https://api.openai.com.evil.example/v1",
    "openai/gpt-5@https://api.openai.com./v1",
    "openai/gpt-5@https://api.openai.com:8443/v1",
    "openai/gpt-5@https://api-openai.com/v1",
    "openai/gpt-5@https://xn--pi-6kc.openai.com/v1",
    "openai/gpt-5@https://evil.example/api.openai.com/v1",
    "openai/gpt-5@https://evil.example/https://api.openai.com/v1",
    "openai/gpt-5@http://127.0.0.1:9/v1",
    "openai/gpt-5@http://localhost:9/v1",
    "openai/gpt-5@http://localhost.evil.example/v1",
    "openai/gpt-5@https://openrouter.ai/api/v1",
    "google/gemini-3-pro@https://api.openai.com/v1",
    "openrouter/x@https://evil.example/v1",
    "together/x@https://evil.example/v1",
    "dashscope/x@https://evil.example/v1",
    "vllm/tiny@http://127.0.0.1:8001/v1",
    "vllm/tiny@http://127.0.0.2:8000/v1",
    "vllm/tiny@https://evil.example:8000/v1",
    "sglang/tiny@https://evil.example/v1",
    "compatible/tiny@https://evil.example/v1",
    "compatible/tiny@http://127.0.0.1:8000/v1",
    "compatible/tiny@http://[::1]:8000/v1",
]


@pytest.mark.parametrize("model", ELSEWHERE)
def test_an_address_in_a_recipe_obtains_no_key(model: str) -> None:
    asked = find_model_endpoint(model, key_hosts="", environment=KEYS)
    assert asked.variable is None
    assert asked.read_key() is None
    assert "without a key (" in str(asked)
    assert "goes" in asked.remark


@pytest.mark.parametrize(
    ("model", "variable", "host"),
    [
        ("openai/gpt-5", "OPENAI_API_KEY", "api.openai.com"),
        ("openai/gpt-5@https://API.openai.com:443/v1", "OPENAI_API_KEY", "api.openai.com"),
        ("openrouter/openai/gpt-5.1", "OPENROUTER_API_KEY", "openrouter.ai"),
        ("google/gemini-3-pro", "GEMINI_API_KEY", "generativelanguage.googleapis.com"),
        ("together/x", "TOGETHER_API_KEY", "api.together.xyz"),
        ("dashscope/x", "DASHSCOPE_API_KEY", "dashscope-intl.aliyuncs.com"),
        ("vllm/tiny", "VLLM_API_KEY", "127.0.0.1:8000"),
    ],
)
def test_a_providers_key_goes_to_its_own_server(model: str, variable: str, host: str) -> None:
    asked = find_model_endpoint(model, key_hosts="evil.example", environment=KEYS)
    assert str(asked) == f"asks {host} as {parse_model_address(model).name}, with {variable}"


@pytest.mark.parametrize(
    ("url", "key_hosts"),
    [
        ("https://llm.example.org/v1", "llm.example.org"),
        ("https://LLM.example.org/v1", " other.example , llm.EXAMPLE.org"),
        ("https://llm.example.org:8443/v1", "llm.example.org:8443"),
        ("http://127.0.0.1:8009/v1", "127.0.0.1:8009"),
        ("http://127.8.8.8:8000/v1", "127.8.8.8:8000"),
        ("http://localhost/v1", "localhost"),
        ("http://[::1]:8000/v1", "[0:0:0:0:0:0:0:1]:8000"),
    ],
)
@pytest.mark.parametrize("provider", ["openai", "vllm", "sglang", "compatible"])
def test_a_host_that_the_user_named_gets_the_key_for_it_and_no_other(
    provider: str, url: str, key_hosts: str
) -> None:
    asked = find_model_endpoint(f"{provider}/tiny@{url}", key_hosts=key_hosts, environment=KEYS)
    assert asked.variable == "OPENAI_COMPATIBLE_API_KEY"


@pytest.mark.parametrize(
    ("url", "key_hosts"),
    [
        ("https://evil.example/v1", "example"),
        ("https://llm.example.org.evil.example/v1", "llm.example.org"),
        ("https://a.llm.example.org/v1", "llm.example.org"),
        ("https://llm.example.org:8443/v1", "llm.example.org"),
        ("http://llm.example.org:8443/v1", "llm.example.org"),
        ("http://127.0.0.1:9/v1", "127.0.0.1"),
        ("http://127.0.0.1:9/v1", "127.0.0.1:8000"),
        ("http://127.0.0.1:9/v1", "localhost:9"),
    ],
)
def test_a_named_host_is_that_host_and_port_alone(url: str, key_hosts: str) -> None:
    assert find_model_endpoint(f"compatible/tiny@{url}", key_hosts=key_hosts).variable is None


@pytest.mark.parametrize(
    "host",
    [
        "llm.example.org",
        "192.168.0.7",
        "0.0.0.0",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "localhost.",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "[::ffff:127.0.0.1]",
        "[::]",
    ],
)
def test_a_key_travels_in_clear_to_this_machine_only(host: str) -> None:
    model = f"compatible/tiny@http://{host}:8000/v1"
    with pytest.raises(InvalidSettingError, match=r"in clear.*Write https://, tunnel it"):
        find_model_endpoint(model, key_hosts=f"{host}:8000")
    with pytest.raises(InvalidSettingError, match=r"in clear.*Write https://"):
        EndpointReviewer(model, api_key=SECRET)
    asked = find_model_endpoint(model, key_hosts="")
    assert " in clear as compatible/tiny, without a key" in str(asked)


@pytest.mark.parametrize("provider", sorted(PROVIDERS))
def test_who_answers_nobody_without_a_key_is_not_asked_without_one(provider: str) -> None:
    known = PROVIDERS[provider]
    address = "" if known.base_url else "@https://mine.example.org/v1"
    model, key_hosts = f"{provider}/tiny{address}", "mine.example.org"
    if not known.needs_key:
        assert find_model_endpoint(model, key_hosts=key_hosts, environment={}).server
        return
    told = rf"{known.key_variable}: not set, and .* requires a key.*export {known.key_variable}="
    with pytest.raises(InvalidSettingError, match=told):
        find_model_endpoint(model, key_hosts=key_hosts, environment={})


def test_the_key_of_a_provider_without_an_address_goes_only_to_named_hosts() -> None:
    model = "azure/tiny@https://mine.openai.azure.com/openai/v1"
    keys = {"AZURE_OPENAI_API_KEY": SECRET}
    asked = find_model_endpoint(model, key_hosts="mine.openai.azure.com", environment=keys)
    assert asked.variable == "AZURE_OPENAI_API_KEY"
    with pytest.raises(InvalidSettingError, match=r"Set UNREEL_KEY_HOSTS=mine\.openai"):
        find_model_endpoint(model, key_hosts="", environment=keys)


def ask(model: str, request: ReviewRequest, key: str | None = None) -> Reply | Failure:
    reviewer = EndpointReviewer(model, api_key=key, limits=QUICK)

    async def work() -> list[Reply | Failure]:
        return [await reviewer.answer(request)]

    [outcome] = run(reviewer, work)
    return outcome


AMBIENT = {
    "OPENAI_ADMIN_KEY": SECRET,
    "OPENAI_BASE_URL": "http://127.0.0.1:9/elsewhere",
    "OPENAI_CUSTOM_HEADERS": f"api-key: {SECRET}\nAuthorization: {SECRET}\nCookie: {SECRET}",
    "OPENAI_LOG": "debug",
    "OPENAI_ORG_ID": SECRET,
    "OPENAI_PROJECT_ID": SECRET,
    "OPENAI_WEBHOOK_SECRET": SECRET,
}


@pytest.mark.parametrize("key", [None, "sk-given"])
def test_no_variable_of_other_clients_changes_a_request(
    key: str | None,
    fault_run: Any,
    make_sheet: MakeSheet,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def seen() -> dict[str, Any]:
        run_ = fault_run("500", 0)
        assert isinstance(ask(run_.model, make_sheet(), key), Reply)
        stats: dict[str, Any] = run_.stats()
        return {name: stats[name] for name in ("headers", "bodies", "n_requests")}

    plain = seen()
    for name, value in (AMBIENT | dict.fromkeys(KEYS, SECRET)).items():
        monkeypatch.setenv(name, value)
    login = tmp_path / "netrc"
    login.write_text(f"machine 127.0.0.1 login me password {SECRET}\n")
    monkeypatch.setenv("NETRC", str(login))
    assert seen() == plain
    assert plain["headers"].get("authorization") == (f"Bearer {key}" if key else None)


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """A proxy that the environment names: it writes down what it is sent and hangs up."""
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    visitor, _ = listener.accept()
                    with visitor:
                        seen.append(visitor.recv(65536))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, address)
            monkeypatch.setenv(name.upper(), address)
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        yield seen
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(timeout=10)


def test_a_proxy_is_never_on_the_way_to_this_machine(
    fault_run: Any, make_sheet: MakeSheet, proxy: list[bytes]
) -> None:
    assert isinstance(ask(fault_run("500", 0).model, make_sheet(), SECRET), Reply)
    assert isinstance(ask("vllm/tiny@http://[::1]:9/v1", make_sheet(), SECRET), Failure)
    assert isinstance(ask("vllm/tiny@http://localhost:9/v1", make_sheet(), SECRET), Failure)
    assert proxy == []


def test_a_proxy_learns_the_host_over_https_and_not_the_key(
    make_sheet: MakeSheet, proxy: list[bytes]
) -> None:
    assert isinstance(ask("openai/gpt-5@https://nobody.invalid/v1", make_sheet(), SECRET), Failure)
    assert proxy, "no proxy was used, so nothing was proved"
    assert all(asked.startswith(b"CONNECT nobody.invalid:443 ") for asked in proxy)
    assert SECRET.encode() not in b"".join(proxy)
