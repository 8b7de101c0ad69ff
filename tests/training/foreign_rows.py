"""Runs in LLaMA-Factory's own environment: prints what its loader makes of an exported folder.

python foreign_rows.py FOLDER
"""

import json
import sys

from llamafactory.data import get_dataset, get_template_and_fix_tokenizer
from llamafactory.hparams import get_train_args
from llamafactory.model import load_tokenizer

sys.argv[1] += "/train.yaml"
model, data, training, _, _ = get_train_args()
tools = load_tokenizer(model)
template = get_template_and_fix_tokenizer(tools["tokenizer"], data)
rows = get_dataset(template, model, data, training, stage="sft", **tools)["train_dataset"]
told = []
for row in rows:
    seen = template.mm_plugin._get_mm_inputs(
        row["images"] or [], row["videos"] or [], [], tools["processor"]
    )
    grid = seen.get("video_grid_thw", seen.get("image_grid_thw"))
    told.append({"ids": row["input_ids"], "labels": row["labels"], "grid": grid.tolist()})
sys.stdout.write(f"ROWS {json.dumps(told)}\n")
