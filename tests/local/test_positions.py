"""Where the text behind a video stands: as in vLLM, in training and asking alike."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from local.sheets import ask, shown
from unreel.core.errors import InvalidSettingError
from unreel.reviewers.local.checkpoint import CheckpointInputSpec, FamilyName, Form
from unreel.reviewers.local.encoder import EncodedRequest, RequestEncoder
from unreel.reviewers.local.loading import patch_rope_positions, require_known_rope_method

pytestmark = pytest.mark.filterwarnings("default")
SHAPES = [
    (8, 2, (112, 84)),
    (5, 1, (56, 56)),
    (1, 1, (112, 84)),
    (16, 8, (84, 168)),
    (2, 3, (60, 60)),
]
Tiny = Callable[[FamilyName], Path]


def opened(folder: Path, family: FamilyName, form: Form) -> tuple[Any, RequestEncoder]:
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder)
    taught = CheckpointInputSpec(family=family, input=form, box_space="model-input")
    return model, RequestEncoder(folder, taught)


def film(
    encoder: RequestEncoder, shape: tuple[int, int, tuple[int, int]], **asked: str
) -> EncodedRequest:
    n, fps, size = shape
    made = encoder.encode(ask([shown([Fraction(i, fps) for i in range(n)], size=size)]), **asked)
    assert isinstance(made, EncodedRequest), made
    return made


def positions(model: Any, batch: dict[str, Any]) -> Any:
    found, _ = model.model.get_rope_index(**batch)
    return found


def served(encoded: EncodedRequest, model: Any) -> Any:
    """vLLM's rule written out: whatever comes next starts at the largest position so far, plus one."""
    config = model.config
    grids = encoded.media.get("video_grid_thw", encoded.media.get("image_grid_thw")).tolist()
    seconds = encoded.media.get("second_per_grid_ts", torch.ones(len(grids))).tolist()
    merge = config.vision_config.spatial_merge_size
    pace = getattr(config.vision_config, "tokens_per_second", 1.0)
    pads = {config.image_token_id, config.video_token_id}
    placed: list[tuple[int, int, int]] = []
    ids, start, which = encoded.input_ids.tolist(), 0, 0
    while len(placed) < len(ids):
        if ids[len(placed)] not in pads:
            placed.append((start, start, start))
        else:
            t, h, w = grids[which]
            step = pace * seconds[which] if ids[len(placed)] == config.video_token_id else 1.0
            placed += [
                (start + int(i * step), start + y, start + x)
                for i in range(t)
                for y in range(h // merge)
                for x in range(w // merge)
            ]
            which += 1
        start = max(map(max, placed)) + 1
    return torch.tensor(placed).T


@pytest.mark.parametrize("pad", ["left", "right"])
def test_text_behind_a_video_of_qwen25_starts_behind_its_last_instant(tiny: Tiny, pad: str) -> None:
    model, encoder = opened(tiny("qwen2.5-vl"), "qwen2.5-vl", "video")
    some = [film(encoder, shape, target="REAL.") for shape in SHAPES]
    batch = encoder.collate(some, pad=pad)
    batch.pop("labels")
    expected = [served(one, model) for one in some]

    def differing() -> int:
        found, mask = positions(model, batch), batch["attention_mask"].bool()
        same = [torch.equal(found[:, i, mask[i]], expected[i]) for i in range(len(some))]
        return same.count(False)

    assert differing() > 0, "transformers counts as the server does: the mend is needless"
    patch_rope_positions(model)
    assert differing() == 0


def test_answers_go_on_from_where_the_prompt_ends(tiny: Tiny) -> None:
    model, encoder = opened(tiny("qwen2.5-vl"), "qwen2.5-vl", "video")
    patch_rope_positions(model)
    batch = encoder.collate([film(encoder, (16, 1, (56, 56)))], pad="left")
    with torch.no_grad():
        made = model.generate(**batch, max_new_tokens=4, min_new_tokens=4, do_sample=False)
        again = {**batch, "input_ids": made, "attention_mask": torch.ones_like(made)}
        again["mm_token_type_ids"] = torch.nn.functional.pad(batch["mm_token_type_ids"], (0, 4))
        whole = model(**again).logits[0, -5:-1].argmax(-1)
    assert torch.equal(whole, made[0, -4:])


@pytest.mark.parametrize("form", ["frames", "video"])
@pytest.mark.parametrize("family", ["qwen2.5-vl", "qwen3-vl"])
def test_pictures_and_qwen3_need_no_mend(tiny: Tiny, family: FamilyName, form: Form) -> None:
    if (family, form) == ("qwen2.5-vl", "video"):
        return
    model, encoder = opened(tiny(family), family, form)
    for shape in SHAPES[:2] + SHAPES[3:]:
        one = film(encoder, shape)
        if form == "video":  # each two frames are a picture of their own
            grid = one.media["video_grid_thw"]
            each = torch.cat(
                [grid.new_ones(int(grid[0, 0]), 1), grid[:, 1:].expand(int(grid[0, 0]), -1)], 1
            )
            expected = served(
                EncodedRequest(one.input_ids, one.n_prompt, {"video_grid_thw": each}), model
            )
        else:
            expected = served(one, model)
        assert torch.equal(positions(model, encoder.collate([one], pad="left"))[:, 0], expected)


def test_a_way_of_counting_that_nobody_looked_through_is_refused() -> None:
    def get_rope_index(self: object, input_ids: object) -> object:
        return input_ids

    with pytest.raises(InvalidSettingError, match=r"counts Qwen2\.5-VL's positions"):
        require_known_rope_method(get_rope_index)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_the_rule_written_out_here_is_that_of_vllm_itself(
    tiny: Tiny, shape: tuple[int, int, tuple[int, int]]
) -> None:
    pytest.importorskip("vllm")
    from vllm.model_executor.models.qwen2_5_vl import Qwen2_5_VLForConditionalGeneration as Server

    model, encoder = opened(tiny("qwen2.5-vl"), "qwen2.5-vl", "video")
    one = film(encoder, shape)
    ids = one.input_ids.tolist()
    first = ids.index(model.config.video_token_id)
    data = {
        "video_grid_thw": SimpleNamespace(data=one.media["video_grid_thw"][0]),
        "second_per_grid_ts": SimpleNamespace(data=one.media["second_per_grid_ts"][0]),
    }
    feature = SimpleNamespace(
        mm_position=SimpleNamespace(offset=first), modality="video", data=data
    )
    server = SimpleNamespace(config=model.config)
    server.iter_mm_grid_thw = lambda features: Server.iter_mm_grid_thw(server, features)
    found, _ = Server.get_mrope_input_positions(server, ids, [feature])
    assert torch.equal(found, served(one, model))
