"""Plan of `unreel serve`: the command of a vLLM server for a checkpoint and its adapters."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.safe_names import make_safe_file_name
from unreel.reviewers.contract import MAX_CLIPS
from unreel.reviewers.endpoint.model_families import RESIZED, match_model_family
from unreel.reviewers.local.checkpoint import (
    ADAPTER,
    CONFIG,
    SETTING,
    CheckpointInputSpec,
    FamilyName,
    Form,
    LocalCheckpoint,
    ServedAdapter,
    build_adapter_arguments,
    compute_weights_digest,
    get_checkpoint_display_name,
    read_checkpoint,
    read_checkpoint_input_spec,
    read_model_json,
    read_served_adapter,
    require_safe_weights,
)

LOOPBACK = "127.0.0.1"
MAX_LENGTH = 32_768
"""Default maximum number of tokens of a question with its answer."""
_MAX_IMAGES = 256
"""Maximum number of frames of one clip that are sent as single images."""
_DIGITS = 8
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_SKEWED = ((5, 6), (5, 23))
"""Range of transformers releases, without its end, that ignore a video's length in later positions: decision 0027."""
_ENVIRONMENT: Mapping[str, str] = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_MEDIA_URL_ALLOW_REDIRECTS": "0",
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "0",
    "VLLM_ALLOW_INSECURE_SERIALIZATION": "0",
    "VLLM_SERVER_DEV_MODE": "0",
    "PYTHONSAFEPATH": "1",
}

_ON_PROCESSORS: Mapping[str, str] = {
    "VLLM_CPU_KVCACHE_SPACE": "4",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmServerSettings:
    """Settings of a vLLM server: host, port, number of GPUs, and maximum length in tokens."""

    host: str = LOOPBACK
    port: int = 8000
    gpus: int = 1
    """Number of GPUs; 0 for a CPU build of vLLM."""
    max_length: int | None = None

    @property
    def url(self) -> str:
        """Return the URL at which local clients reach the server."""
        host = LOOPBACK if self.host == "0.0.0.0" else self.host  # noqa: S104  where it listens
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """A model of a vLLM server: name there, input forms, and the units of its boxes."""

    name: str
    """Name on the server; it begins with the family, which defines the accepted input."""
    forms: tuple[Form, ...]
    """Accepted input forms: the one of its training, or all that the server supports."""
    box_spaces: Mapping[Form, str] = field(default_factory=dict)
    """Coordinate space of its boxes by input form, if its family does not define it."""
    taught: CheckpointInputSpec | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmServerPlan:
    """Plan of a vLLM server: models, command-line arguments, environment and remarks."""

    base: Path
    place: VllmServerSettings
    models: tuple[ServedModel, ...]
    """Served models; the first is the one that `unreel serve` was called with."""
    arguments: tuple[str, ...]
    """Arguments after `python -m vllm.entrypoints.openai.api_server --model MODEL`."""
    environment: Mapping[str, str]
    usual: Mapping[str, str]
    """Default environment variables, for those that the user's environment does not set."""
    changed: Mapping[str, str] = field(default_factory=dict)
    """Texts of the model's files that must differ for the server, by file name."""
    remarks: tuple[str, ...] = ()


def plan_vllm_server(
    checkpoint: Path, *, settings: VllmServerSettings, adapters: Mapping[str, Path] | None = None
) -> VllmServerPlan:
    """Plan the vLLM server for the model or adapter in `checkpoint`, and for further `adapters`.

    All adapters must have the same base model. Raise `UnreadableSourceError` if a folder lacks
    required files or has invalid files, or `InvalidSettingError` if the parts are not compatible,
    or vLLM cannot serve them.
    """
    if (checkpoint / ADAPTER).is_file():
        input_spec = read_checkpoint_input_spec(checkpoint)
        if input_spec is None or input_spec.base is None:
            raise UnreadableSourceError(
                str(checkpoint),
                "an adapter that does not name its base",
                f"Serve the base: unreel serve BASE --adapter NAME={checkpoint}",
            )
    chosen = read_checkpoint(checkpoint)
    full = chosen if chosen.base is None else read_checkpoint(chosen.base)
    base, family = full.folder.resolve(), full.taught.family
    config = read_model_json(base / CONFIG, "Name a folder with a model's config.json")
    named = {} if chosen is full else {None: chosen.folder}
    served = [
        _require_matching_adapter(
            read_served_adapter(_build_served_name(family, name, folder), folder), family, base
        )
        for name, folder in [*named.items(), *(adapters or {}).items()]
    ]
    remarks: list[str] = []
    forms = _select_input_forms(full, config, remarks)
    declared = full.taught if full.is_ours else None
    first_name = _build_served_name(family, None, base)
    first = _build_served_model(first_name, base, family, forms, declared)
    tuned = [
        _build_served_model(adapter.name, base, family, forms, adapter.taught or declared)
        for adapter in served
    ]
    models = (first, *tuned) if chosen is full else (*tuned, first)
    names = [model.name for model in models]
    if len({*names}) < len(names):
        raise InvalidSettingError(
            SETTING,
            f"one name for two of {', '.join(names)}",
            "Give each adapter a name of its own",
        )
    used_forms = {form for model in models for form in model.forms}
    return VllmServerPlan(
        base=base,
        place=settings,
        models=models,
        arguments=(
            *("--served-model-name", first.name),
            *build_vllm_network_options(settings),
            *_build_vllm_model_options(settings, config, family),
            *_build_vllm_media_options(used_forms, family),
            *build_adapter_arguments(served),
        ),
        environment=_ENVIRONMENT,
        usual=_ON_PROCESSORS if settings.gpus == 0 else {},
        changed=_build_sampling_config_file(base)
        if family == "videollama3" and "video" in used_forms
        else {},
        remarks=tuple(remarks),
    )


def plan_named_vllm_server(
    name: str,
    folder: Path,
    *,
    settings: VllmServerSettings,
    max_length: int | None,
    arguments: Sequence[str],
) -> VllmServerPlan:
    """Plan the vLLM server for a published checkpoint in `folder`, served under its name on the hub.

    `arguments` are those of its owner. Raise `UnreadableSourceError` if the weights are not safe to
    load.
    """
    require_safe_weights(folder)
    return VllmServerPlan(
        base=folder,
        place=settings,
        models=(ServedModel(name=name, forms=("frames",)),),
        arguments=(
            *("--served-model-name", name),
            *build_named_vllm_options(settings, max_length),
            *("--load-format", "safetensors"),
            *arguments,
        ),
        environment=_ENVIRONMENT,
        usual=_ON_PROCESSORS if settings.gpus == 0 else {},
    )


def build_named_vllm_options(
    settings: VllmServerSettings, max_length: int | None
) -> tuple[str, ...]:
    """Return the arguments of vLLM for a published checkpoint, besides those of its owner."""
    return (
        *build_vllm_network_options(settings),
        *("--generation-config", "vllm"),
        *(() if max_length is None else ("--max-model-len", str(max_length))),
        *(("--tensor-parallel-size", str(settings.gpus)) if settings.gpus > 1 else ()),
    )


def _select_input_forms(
    checkpoint: LocalCheckpoint, config: Mapping[str, Any], remarks: list[str]
) -> tuple[Form, ...]:
    """Return the forms (frames, video) that the model takes; unservable ones give remarks."""
    if checkpoint.is_ours:
        return (checkpoint.taught.input,)
    numbers = re.findall(r"\d+", str(config.get("transformers_version")))
    saved = tuple(int(part) for part in numbers[:2])
    if checkpoint.taught.family == "qwen2.5-vl" and _SKEWED[0] <= saved < _SKEWED[1]:
        remarks.append(
            f"{checkpoint.folder.name} was saved by transformers {saved[0]}.{saved[1]} and not by unreel. "
            "If it was tuned on video there, its text positions after a video are others than "
            "vLLM's, so it is served for frames only"
        )
        return ("frames",)
    return ("frames", "video")


def _build_served_model(
    name: str,
    base: Path,
    family: FamilyName,
    forms: tuple[Form, ...],
    input_spec: CheckpointInputSpec | None,
) -> ServedModel:
    accepted = forms if input_spec is None else (input_spec.input,)
    spaces = {form: _find_box_space(base, family, form, input_spec) for form in accepted}
    declared = {form: space for form, space in spaces.items() if space is not None}
    return ServedModel(name=name, forms=accepted, box_spaces=declared, taught=input_spec)


def _find_box_space(
    base: Path, family: FamilyName, form: Form, input_spec: CheckpointInputSpec | None
) -> str | None:
    known = match_model_family(family)
    convention = known.boxes if input_spec is None else input_spec.box_space
    if convention != known.boxes and convention in {"permille", "unit"}:
        return convention
    rule = known.film if form == "video" else known.resize
    if convention != "model-input" or rule is None:
        return None
    bounds = _find_pixel_bounds(base, form)
    if bounds is None:
        raise UnreadableSourceError(
            str(base),
            f"the processor does not define the size limits of {form}",
            "Save the model's processor next to its weights",
        )
    if bounds == (rule.min_pixels, rule.max_pixels):
        return None
    return f"{RESIZED}{bounds[0]}-{bounds[1]}"


def _find_pixel_bounds(base: Path, form: Form) -> tuple[int, int] | None:
    """Return minimum and maximum pixels of a frame by the processor in `base`; `None` if not stated."""
    half = "video_processor" if form == "video" else "image_processor"
    older_name = "video_preprocessor_config.json" if form == "video" else "preprocessor_config.json"
    for name in ("processor_config.json", older_name):
        if (base / name).exists():
            config = read_model_json(base / name, "Save the processor again")
            part = config.get(half, config)
            size = part.get("size") if isinstance(part, Mapping) else None
            for section, low, high in (
                (size, "shortest_edge", "longest_edge"),
                (part, "min_pixels", "max_pixels"),
            ):
                bounds = section if isinstance(section, Mapping) else {}
                if isinstance(bounds.get(low), int) and isinstance(bounds.get(high), int):
                    return bounds[low], bounds[high]
    return None


def _build_sampling_config_file(base: Path) -> Mapping[str, str]:
    """Return the file name and text of VideoLLaMA3's processor config with sampling enabled.

    Without it vLLM ignores the frame times of a video and assumes one second between frames. No
    frames are dropped, because each request disables sampling.
    """
    for name in ("processor_config.json", "video_preprocessor_config.json"):
        if not (base / name).exists():
            continue
        config = dict(read_model_json(base / name, "Save the processor again"))
        part = config.get("video_processor", config)
        if isinstance(part, dict) and "video_processor_type" in part:
            part["do_sample_frames"] = True
            return {name: json.dumps(config, indent=2)}
    raise UnreadableSourceError(
        str(base), "no processor of videos", "Save the model's processor next to its weights"
    )


def build_vllm_network_options(settings: VllmServerSettings) -> Sequence[str]:
    """Return the arguments of vLLM for its address, without access to other hosts' media."""
    return (
        *("--host", settings.host, "--port", str(settings.port)),
        *("--allowed-media-domains", "nowhere.invalid"),  # an empty list would allow all domains
        "--disable-fastapi-docs",
        "--disable-uvicorn-access-log",
    )


def _build_vllm_model_options(
    settings: VllmServerSettings, config: Mapping[str, Any], family: FamilyName
) -> Sequence[str]:
    text = config.get("text_config")
    text = text if isinstance(text, Mapping) else config
    longest = text.get("max_position_embeddings") or config.get("max_position_embeddings")
    longest = longest if isinstance(longest, int) and longest > 0 else MAX_LENGTH
    if settings.max_length is not None and settings.max_length > longest:
        raise InvalidSettingError(
            "--max-length", f"the model takes {longest} tokens at most", f"Give {longest} or less"
        )
    dtype = str(config.get("dtype") or config.get("torch_dtype") or text.get("dtype") or "bfloat16")
    return (
        # `auto` converts float32 weights to half precision, which changes the answers.
        *("--dtype", dtype if dtype in {"float32", "float16", "bfloat16"} else "auto"),
        *("--load-format", "safetensors"),
        *("--max-model-len", str(settings.max_length or min(longest, MAX_LENGTH))),
        *("--generation-config", "vllm"),
        *(("--model-impl", "transformers") if family == "videollama3" else ()),
        *(("--tensor-parallel-size", str(settings.gpus)) if settings.gpus > 1 else ()),
        *(("--enforce-eager",) if settings.gpus == 0 else ()),
    )


def _build_vllm_media_options(forms: set[Form], family: FamilyName) -> Sequence[str]:
    images = MAX_CLIPS * _MAX_IMAGES if "frames" in forms else 0
    limits = {"image": images, "video": MAX_CLIPS if "video" in forms else 0}
    written = ("--limit-mm-per-prompt", json.dumps(limits))
    if "video" not in forms:
        return written
    # Set explicitly, because the default changes with transformers 5.22.
    capped = ("--mm-processor-kwargs", json.dumps({"cap_pixels_per_frame": False}))
    return (*written, *(capped if family != "videollama3" else ()), "--trust-request-mm-kwargs")


def _require_matching_adapter(
    adapter: ServedAdapter, family: FamilyName, base: Path
) -> ServedAdapter:
    """Return `adapter` if it fits the family and processor of the base model; otherwise raise."""
    if adapter.taught is not None and adapter.taught.family != family:
        raise InvalidSettingError(
            SETTING,
            f"{adapter.folder} belongs on {adapter.taught.family}, and the base is {family}",
            "Name an adapter of this base",
        )
    form = "frames" if adapter.taught is None else adapter.taught.input
    bounds = _find_pixel_bounds(adapter.folder, form)
    template, own = (folder / "chat_template.jinja" for folder in (adapter.folder, base))
    own_bytes = own.read_bytes() if own.exists() else b""
    same = not template.exists() or template.read_bytes() == own_bytes
    if bounds not in {None, _find_pixel_bounds(base, form)} or not same:
        raise InvalidSettingError(
            SETTING,
            f"{adapter.folder} was trained with another processor than the one in {base}",
            "Merge it into its base and serve that, or ask it with local/",
        )
    return adapter


def _build_served_name(family: FamilyName, name: str | None, folder: Path) -> str:
    if name is not None and not _NAME.fullmatch(name):
        raise InvalidSettingError(
            SETTING,
            f"{name[:40]!r} may contain only letters, digits, `.`, `_` and `-`",
            "Write --adapter NAME=FOLDER",
        )
    if name is None:
        safe_name = make_safe_file_name(get_checkpoint_display_name(folder))
        name = re.sub(r"[^A-Za-z0-9._-]", "-", safe_name).strip("-._") or "model"
    served = f"{family}.{name}.{compute_weights_digest(folder)[:_DIGITS]}"
    if match_model_family(served).name != family:
        raise InvalidSettingError(
            SETTING,
            f"{name!r} is named like a model of another family",
            f"Choose a name that suits {family}",
        )
    return served
