"""Sandbox task that reads a file's C2PA manifest with c2pa-python.

The library is C code that parses untrusted bytes. It is loaded before the process gives up its
rights, and reads the file afterwards.
"""

import io
import json
from collections.abc import Mapping
from typing import Any, BinaryIO

import c2pa

from unreel.media.messages import Task, TaskReplyPayload

LONGEST = 300
MAX_ITEMS = 20
# The sandbox has no network; with this setting the library makes no requests.
_SETTINGS = {"remote_manifest_fetch": False, "ocsp_fetch": False}


def read_manifest_summary(file: BinaryIO, request: Mapping[str, Any]) -> TaskReplyPayload:
    """Return the content of a file's C2PA manifest, or the reason why it cannot be read."""
    anchors = request.get("trust_anchors")
    values: dict[str, Any] = {"verify": {**_SETTINGS, "verify_trust": anchors is not None}}
    if anchors is not None:
        values["trust"] = {"trust_anchors": anchors}
    try:
        with (
            c2pa.Settings.from_dict(values) as settings,
            c2pa.Context(settings) as context,
            c2pa.Reader(request["format"], file, context=context) as reader,
        ):
            store = json.loads(reader.json())
    except c2pa.C2paError.ManifestNotFound:
        return TaskReplyPayload({"found": "absent"})
    except (c2pa.C2paError, ValueError) as error:
        return TaskReplyPayload({"found": "broken", "problems": [_truncate_text(error)]})
    active = store["manifests"][store["active_manifest"]]
    signature = active.get("signature_info") or {}
    generators = active.get("claim_generator_info") or [{"name": active.get("claim_generator")}]
    actions = []
    for assertion in active.get("assertions") or ():
        if not str(assertion.get("label")).startswith("c2pa.actions"):
            continue
        for action in (assertion.get("data") or {}).get("actions") or ():
            source = str(action.get("digitalSourceType") or "").rpartition("/")[2]
            agent = action.get("softwareAgent") or ""
            name = agent.get("name", "") if isinstance(agent, dict) else agent
            parts = [action.get("action"), source and f"({source})", name and f"by {name}"]
            actions.append(_truncate_text(" ".join(str(part) for part in parts if part)))
    return TaskReplyPayload(
        {
            "found": "manifest",
            "state": _truncate_text(store.get("validation_state")),
            "title": _truncate_text(active.get("title")),
            "generator": _truncate_text(generators[0].get("name")),
            "signer": _truncate_text(signature.get("common_name") or signature.get("issuer")),
            "issuer": _truncate_text(signature.get("issuer")),
            "signed_at": _truncate_text(signature.get("time")),
            "actions": actions[:MAX_ITEMS],
            "problems": [
                _truncate_text(problem.get("code"))
                for problem in store.get("validation_status") or ()
            ][:MAX_ITEMS],
        }
    )


def _truncate_text(value: object) -> str:
    return "" if value is None else str(value)[:LONGEST]


def _prepare_tasks() -> Mapping[str, Task]:
    """Run the task once, as ctypes first needs executable memory, forbidden later; return the tasks."""
    read_manifest_summary(io.BytesIO(), {"format": "video/mp4"})
    return {"manifest": read_manifest_summary}


TASKS: Mapping[str, Task] = _prepare_tasks()
