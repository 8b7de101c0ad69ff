"""Make a training that was killed, and the result of the same training without a kill."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from net.commands import keep

RECIPE = """\
name = "tiny"
max_tokens = 8

[model]
name = "base"
family = "qwen2.5-vl"
tune = "lora"
lora_rank = 1
precision = "fp32"
gradient_checkpointing = false

[[data]]
protocol = "trace"
condition = { sampling = "uniform-4", prompt = "fine-tuning" }

[holdout]
near_duplicates = false
share = 0.25

[optimise]
max_steps = 6
batch_size = 2
learning_rate = 1e-3
workers = 0

[watch]
every = 100
save_every = 2
clips = 2
"""
TRAIN = ("train", "run", "tiny.toml", "--data", "lessons", "--accept-leak", "--trusted")


def make_training() -> None:
    """Train to the end, and once more until a SIGKILL behind the second step."""
    write_base(Path("base"))
    Path("tiny.toml").write_text(RECIPE, encoding="utf-8")
    keep("training", *TRAIN, "--out", "whole")
    keep("card", "train", "card", "whole/model")
    program = "from unreel.cli.main import main; main()"
    running = subprocess.Popen([sys.executable, "-c", program, *TRAIN, "--out", "killed"])
    while not Path("killed/checkpoints/step-000002").exists():
        assert running.poll() is None
        time.sleep(0.001)
    running.kill()
    running.wait()
    assert not Path("killed/model").exists()


def write_base(folder: Path) -> None:
    """Write a tiny model whose weights are mostly 0, so that they pack well."""
    import torch
    from transformers import AutoConfig, Qwen2_5_VLForConditionalGeneration

    import tiny_models

    tiny_models.N_TOKENS = 500
    tiny_models.write_tiny("qwen2.5-vl", folder)
    config: Any = AutoConfig.from_pretrained(folder)
    config.text_config.num_hidden_layers = 1
    config.text_config.layer_types = config.text_config.layer_types[:1]
    config.vision_config.depth = 1
    config.vision_config.fullatt_block_indexes = [0]
    torch.manual_seed(0)
    model = Qwen2_5_VLForConditionalGeneration(config)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.copy_(weight.sign() * 0.1 * (torch.rand_like(weight) < 0.05))
    model.save_pretrained(folder)
