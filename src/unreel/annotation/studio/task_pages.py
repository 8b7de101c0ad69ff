"""Tasks of a project, page by page, in an order in which none is missed while others work there."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from unreel.annotation.studio.client import StudioClient, StudioReply, build_refusal_error

PAGE: Final = 500
_PATH: Final = "/api/tasks/"


def read_tasks(
    client: StudioClient,
    project: int,
    *,
    fields: Sequence[str],
    numbers: Sequence[int] | None = None,
) -> Iterator[Mapping[str, Any]]:
    """Yield tasks in the order of their numbers, with `id` and `fields`; only `numbers` if given.

    A page begins after the last number of the previous one, so concurrent changes move nothing. A
    page above the size limit is requested in parts; a single task above it has only its `id`.
    """
    last, size = 0, PAGE
    while True:
        reply = _request_task_page(
            client, project, fields=fields, numbers=numbers, last=last, size=size
        )
        if reply.body is None and size > 1:
            size = max(1, size // 8)
            continue
        if reply.body is None:
            reply = _request_task_page(
                client, project, fields=(), numbers=numbers, last=last, size=1
            )
        found = _parse_task_list(reply)
        yield from found
        if len(found) < size:
            return
        last = int(found[-1]["id"])


def _request_task_page(
    client: StudioClient,
    project: int,
    *,
    fields: Sequence[str],
    numbers: Sequence[int] | None,
    last: int,
    size: int,
) -> StudioReply:
    above = {"operator": "greater", "type": "Number", "value": last}
    items = [{"filter": "filter:tasks:id", **above}]
    if numbers is not None:
        chosen = {"operator": "in_list", "type": "Number", "value": list(numbers)}
        items.append({"filter": "filter:tasks:id", **chosen})
    query = {"filters": {"conjunction": "and", "items": items}, "ordering": ["tasks:id"]}
    return client.look(
        _PATH,
        project=project,
        page_size=size,
        page=1,
        fields="all",
        include=",".join(("id", *fields)),
        query=json.dumps(query),
    )


def _parse_task_list(reply: StudioReply) -> list[Mapping[str, Any]]:
    document = reply.document() if reply.is_ok else None
    tasks = document.get("tasks") if isinstance(document, dict) else None
    if not isinstance(tasks, list):
        raise build_refusal_error(reply, f"GET {_PATH}")
    return tasks
