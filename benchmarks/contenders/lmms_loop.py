"""The same work by lmms-eval: writes a task folder and runs its command in this process."""

import json
import runpy
import sys
from pathlib import Path

_TASK = """
task: still
dataset_path: json
dataset_kwargs: {{data_files: {{test: {questions}}}}}
test_split: test
output_type: generate_until
doc_to_visual: !function lmms_still.visuals
doc_to_text: !function lmms_still.text
doc_to_messages: !function lmms_still.messages
doc_to_target: answer
process_results: !function lmms_still.results
generation_kwargs: {{until: [], do_sample: false, temperature: 0, max_new_tokens: 2048}}
metric_list: [{{metric: answered, aggregation: mean, higher_is_better: true}}]
"""

if __name__ == "__main__":
    listing, base_url, folder = sys.argv[1:]
    task, out = Path(folder) / "task", Path(folder) / "logs"
    task.mkdir(parents=True)
    questions = task / "questions.jsonl"
    clips = Path(listing).read_text(encoding="utf-8").split()
    lines = [json.dumps({"clip": clip, "answer": "0"}) for clip in clips]
    questions.write_text("\n".join(lines), encoding="utf-8")
    (task / "still.yaml").write_text(_TASK.format(questions=questions), encoding="utf-8")
    code = Path(__file__).with_name("lmms_still.py")
    (task / code.name).write_text(code.read_text(encoding="utf-8"), encoding="utf-8")
    model = f"model_version=still,base_url={base_url},api_key=none,num_cpus=16"
    sys.argv = [
        "lmms_eval", "--model", "async_openai", "--model_args", model, "--tasks", "still",
        "--include_path", str(task), "--batch_size", "16", "--output_path", str(out),
    ]  # fmt: skip
    try:
        runpy.run_module("lmms_eval", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code:
            raise
    (summary,) = out.rglob("*results.json")
    share = json.loads(summary.read_text(encoding="utf-8"))["results"]["still"]["answered,none"]
    print(json.dumps({"n": round(share * len(clips))}))
