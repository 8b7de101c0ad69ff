"""Families of models are found by the names of their checkpoints."""

import pytest

from unreel.reviewers.endpoint.model_families import match_model_family


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("Qwen/Qwen3.5-4B", "qwen3.5"),
        ("Qwen/Qwen3.5-35B-A3B", "qwen3.5"),
        ("qwen3.5-omni", "qwen3-vl"),
        ("qwen3.5-plus", "unknown"),
        ("Qwen/Qwen3-VL-8B-Instruct", "qwen3-vl"),
        ("llava-hf/llava-onevision-qwen2-7b-ov-hf", "llava-onevision"),
        ("llava-hf/llava-1.5-7b-hf", "unknown"),
    ],
)
def test_a_name_leads_to_its_family(name: str, family: str) -> None:
    assert match_model_family(name).name == family


def test_the_frames_of_qwen_3_5_are_those_of_qwen_3_vl() -> None:
    new, old = (match_model_family(name) for name in ("Qwen3.5-4B", "Qwen3-VL-8B"))
    assert (new.kind, new.boxes, new.resize) == (old.kind, old.boxes, old.resize)
    assert new.thinking["off"] == {"chat_template_kwargs": {"enable_thinking": False}}
