"""Addresses of models: `provider/name`, with `@http://host:port/v1` for your own server."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from unreel.catalogue.names import list_entry_names
from unreel.core.errors import InvalidSettingError, UnknownNameError
from unreel.core.server_keys import OWN_KEY, ServerAddress, parse_server_url

if TYPE_CHECKING:
    from unreel.catalogue.entries import CatalogueModel

LOCAL = "local/"
"""Prefix of the path of a local model; it is not a provider, and no server is contacted."""


@dataclass(frozen=True, slots=True)
class ModelProvider:
    """A provider whose servers speak the OpenAI chat API."""

    base_url: str | None
    """Default base URL of the server; `None` if the user must give it."""
    key_variable: str | None
    """Environment variable of the API key; `None` if the server needs none."""
    needs_key: bool = True
    """Whether an API key is required; a self-hosted server may accept requests without one."""
    length_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    has_batches: bool = False
    """Whether the provider answers files of questions at half the price, with OpenAI's batch API."""


PROVIDERS: Mapping[str, ModelProvider] = {
    "openai": ModelProvider(
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        length_field="max_completion_tokens",
        has_batches=True,
    ),
    "anthropic": ModelProvider("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    "azure": ModelProvider(None, "AZURE_OPENAI_API_KEY", length_field="max_completion_tokens"),
    "openrouter": ModelProvider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "google": ModelProvider(
        "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"
    ),
    "together": ModelProvider("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "dashscope": ModelProvider(
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"
    ),
    "vllm": ModelProvider("http://127.0.0.1:8000/v1", "VLLM_API_KEY", needs_key=False),
    "sglang": ModelProvider("http://127.0.0.1:30000/v1", None, needs_key=False),
    "ollama": ModelProvider("http://127.0.0.1:11434/v1", None, needs_key=False),
    "lmstudio": ModelProvider("http://127.0.0.1:1234/v1", None, needs_key=False),
    "llamacpp": ModelProvider("http://127.0.0.1:8080/v1", None, needs_key=False),
    "compatible": ModelProvider(None, OWN_KEY, needs_key=False),
}
_FORM = re.compile(r"(?P<provider>[a-z]+)/(?P<model>[^@\s]+)(@(?P<url>https?://[^\s@]+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAddress:
    """Address of a model: provider, name there, and the base URL of the server."""

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
    """Return whether `model` names a model behind a server, by its address or in the catalogue."""
    if "/" in model.partition("@")[0]:
        return not model.startswith(LOCAL)
    return _find_named_checkpoint(model) is not None


def parse_model_address(text: str) -> ModelAddress:
    """Parse a model address, for example `openai/gpt-5` or `vllm/tiny@http://127.0.0.1:8000/v1`.

    A name of the catalogue, with or without a URL, is its id on the hub behind vLLM.
    """
    named = _find_named_checkpoint(text)
    if named is not None and named.hub_ids is not None and named.hub_ids.value is not None:
        _, at, url = text.partition("@")
        text = f"vllm/{named.hub_ids.value[0]}{at}{url}"
    match = _FORM.fullmatch(text)
    if match is None:
        public_part = text.partition("@")[0]  # the URL may contain a password
        if re.fullmatch(r"[a-z]+/[^@\s]+@[\w.-]+(:\d+)?(/[^\s@]*)?", text):
            raise InvalidSettingError(
                "model",
                f"the address in {text!r} lacks http:// or https://",
                f"Write {text.replace('@', '@http://')}",
            )
        raise InvalidSettingError(
            "model",
            f"cannot read {public_part!r}",
            "Write provider/name, or provider/name@http://host:port/v1 (no user or password)",
        )
    provider = PROVIDERS.get(match["provider"])
    if provider is None:
        raise UnknownNameError("provider", match["provider"], sorted(PROVIDERS))
    base_url = match["url"] or provider.base_url
    if base_url is None:
        raise InvalidSettingError(
            "model",
            f"{text!r} has no address",
            f"Write {match['provider']}/{match['model']}@http://host:port/v1",
        )
    parse_server_url(base_url)
    return ModelAddress(provider=match["provider"], model=match["model"], base_url=base_url)


def _find_named_checkpoint(model: str) -> "CatalogueModel | None":
    """Return the checkpoint that `model` names; entries are loaded only for a name of the catalogue."""
    if model.partition("@")[0] not in list_entry_names("models"):
        return None
    from unreel.catalogue.entries import find_named_checkpoint

    return find_named_checkpoint(model)
