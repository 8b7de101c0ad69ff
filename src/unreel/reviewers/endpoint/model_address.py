"""Addresses of models: `provider/name`, with `@http://host:port/v1` for your own server."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from unreel.core.errors import InvalidSettingError, UnknownNameError
from unreel.core.server_keys import OWN_KEY, ServerAddress, parse_server_url

LOCAL: Final = "local/"
"""Prefix of the path of a local model; it is not a provider, and no server is contacted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProvider:
    """A provider whose servers speak the OpenAI chat API."""

    base_url: str | None
    """Default base URL of the server; `None` if the user must give it."""
    key_variable: str | None
    """Environment variable of the API key; `None` if the server needs none."""
    needs_key: bool = True
    """Whether an API key is required; a self-hosted server may accept requests without one."""
    length_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"


PROVIDERS: Final[Mapping[str, ModelProvider]] = {
    "openai": ModelProvider(
        base_url="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        length_field="max_completion_tokens",
    ),
    "anthropic": ModelProvider(
        base_url="https://api.anthropic.com/v1", key_variable="ANTHROPIC_API_KEY"
    ),
    "azure": ModelProvider(
        base_url=None,
        key_variable="AZURE_OPENAI_API_KEY",
        length_field="max_completion_tokens",
    ),
    "openrouter": ModelProvider(
        base_url="https://openrouter.ai/api/v1", key_variable="OPENROUTER_API_KEY"
    ),
    "google": ModelProvider(
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        key_variable="GEMINI_API_KEY",
    ),
    "together": ModelProvider(
        base_url="https://api.together.xyz/v1", key_variable="TOGETHER_API_KEY"
    ),
    "dashscope": ModelProvider(
        base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        key_variable="DASHSCOPE_API_KEY",
    ),
    "vllm": ModelProvider(
        base_url="http://127.0.0.1:8000/v1", key_variable="VLLM_API_KEY", needs_key=False
    ),
    "sglang": ModelProvider(
        base_url="http://127.0.0.1:30000/v1", key_variable=None, needs_key=False
    ),
    "ollama": ModelProvider(
        base_url="http://127.0.0.1:11434/v1", key_variable=None, needs_key=False
    ),
    "lmstudio": ModelProvider(
        base_url="http://127.0.0.1:1234/v1", key_variable=None, needs_key=False
    ),
    "compatible": ModelProvider(base_url=None, key_variable=OWN_KEY, needs_key=False),
}
_FORM: Final = re.compile(r"(?P<provider>[a-z]+)/(?P<model>[^@\s]+)(@(?P<url>https?://[^\s@]+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAddress:
    """Address of a model: its provider, its name there, and the base URL of the server."""

    provider: str
    model: str
    base_url: str

    @property
    def name(self) -> str:
        """Return `provider/model`; the server address is not part of the name."""
        return f"{self.provider}/{self.model}"

    @property
    def server(self) -> ServerAddress:
        """Return the server of the base URL."""
        return parse_server_url(self.base_url)


def is_server_model(model: str) -> bool:
    """Return whether `model` names a model behind a server."""
    return "/" in model and not model.startswith(LOCAL)


def parse_model_address(text: str) -> ModelAddress:
    """Parse a model address, for example `openai/gpt-5` or `vllm/tiny@http://127.0.0.1:8000/v1`."""
    match = _FORM.fullmatch(text)
    if match is None:
        remedy = "Write provider/name, or provider/name@http://host:port/v1 (no user or password)"
        setting = "model"
        public_part = text.partition("@")[0]  # the URL may contain a password
        raise InvalidSettingError(setting, f"cannot read {public_part!r}", remedy)
    provider = PROVIDERS.get(match["provider"])
    if provider is None:
        kind = "provider"
        raise UnknownNameError(kind, match["provider"], sorted(PROVIDERS))
    base_url = match["url"] or provider.base_url
    if base_url is None:
        remedy = f"Write {match['provider']}/{match['model']}@http://host:port/v1"
        setting = "model"
        raise InvalidSettingError(setting, f"{text!r} has no address", remedy)
    parse_server_url(base_url)
    return ModelAddress(provider=match["provider"], model=match["model"], base_url=base_url)
