"""A folder that looks like a model, and an interpreter that looks as if it had vLLM."""

import json
import sys
from pathlib import Path
from typing import Any

SERVER = """
import http.server, json, os, subprocess, sys
taken = dict(zip(sys.argv[1:], sys.argv[2:]))
record = os.environ["VLLM_STAND_IN_RECORD"]
left = subprocess.Popen(["sleep", "600"], start_new_session=True)
with open(record, "w") as file:
    json.dump({"argv": sys.argv[1:], "environment": dict(os.environ), "pids": [os.getpid(), left.pid],
               "model": sorted(os.listdir(taken["--model"]))}, file)
if os.environ.get("VLLM_STAND_IN_DIES"):
    print("INFO 11-16 06:22:51 [weights.py:1] loading", flush=True)
    sys.exit("RuntimeError: \\x1b[31mno room for the weights")
names = [taken["--served-model-name"]]
if "--lora-modules" in sys.argv:
    for text in sys.argv[sys.argv.index("--lora-modules") + 1:]:
        names.append(json.loads(text)["name"])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        key = os.environ.get("VLLM_API_KEY")
        right = not key or self.headers.get("Authorization") == f"Bearer {key}"
        body = json.dumps({"data": [{"id": name} for name in names]}).encode()
        self.send_response(200 if right else 401)
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *said):
        pass
http.server.HTTPServer((taken["--host"], int(taken["--port"])), Handler).serve_forever()
"""


def write_interpreter(folder: Path, version: str | None = "0.32.0") -> Path:
    """An interpreter with a vLLM of that version that only lists its models, or without one."""
    site = folder / f"site-{version}"
    package = site / "vllm" / "entrypoints" / "openai"
    package.mkdir(parents=True)
    if version is not None:
        (package / "api_server.py").write_text(SERVER, encoding="utf-8")
        info = site / f"vllm-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: vllm\nVersion: {version}\n", encoding="utf-8")
    python = folder / f"python-{version}"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={site} exec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    return python


def write_model(folder: Path, kind: str = "qwen2_5_vl", **config: Any) -> Path:
    """A folder with all of a model but its numbers."""
    folder.mkdir(parents=True)
    described = {
        "model_type": kind,
        "dtype": "bfloat16",
        "transformers_version": "5.19.0",
        "text_config": {"max_position_embeddings": 128_000},
        **config,
    }
    half = {"size": {"shortest_edge": 3136, "longest_edge": 50176}, "video_processor_type": "x"}
    processor = {"image_processor": half, "video_processor": {**half, "do_sample_frames": False}}
    (folder / "config.json").write_text(json.dumps(described), encoding="utf-8")
    (folder / "processor_config.json").write_text(json.dumps(processor), encoding="utf-8")
    (folder / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    return folder


def write_adapter(
    folder: Path, *, tensor: str = "language_model.layers.0.q", **config: Any
) -> Path:
    """A folder with all of an adapter but its numbers."""
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text(json.dumps({"r": 8, **config}), encoding="utf-8")
    header = json.dumps({f"base_model.model.model.{tensor}.lora_A.weight": {}}).encode()
    held = len(header).to_bytes(8, "little") + header
    (folder / "adapter_model.safetensors").write_bytes(held)
    return folder
