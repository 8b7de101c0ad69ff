"""Tasks of a project, page by page, in an order in which none is missed while others work there."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from unreel.annotate.studio.client import Reply, StudioClient, refusal

PAGE: Final = 500
_PATH: Final = "/api/tasks/"


def read_tasks(
    client: StudioClient, project: int, *, fields: Sequence[str], since: str = ""
) -> Iterator[Mapping[str, Any]]:
    """Tasks by their numbers, with `id` and `fields`; with `since`, those that changed after it.

    A page begins behind the last number of the one before it: what is added or taken away meanwhile
    moves nothing. A page that is more than a reply may be is asked for in parts; a single task that is
    too much comes with `id` alone.
    """
    last, size = 0, PAGE
    while True:
        reply = _look(client, project, fields=fields, since=since, last=last, size=size)
        if reply.body is None and size > 1:
            size = max(1, size // 8)
            continue
        if reply.body is None:
            reply = _look(client, project, fields=(), since=since, last=last, size=1)
        found = _tasks(reply)
        yield from found
        if len(found) < size:
            return
        last = int(found[-1]["id"])


def _look(
    client: StudioClient, project: int, *, fields: Sequence[str], since: str, last: int, size: int
) -> Reply:
    items = [_more_than("id", "Number", last)]
    if since:
        items.append(_more_than("updated_at", "Datetime", since))
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


def _more_than(column: str, kind: str, value: object) -> dict[str, object]:
    return {"filter": f"filter:tasks:{column}", "operator": "greater", "type": kind, "value": value}


def _tasks(reply: Reply) -> list[Mapping[str, Any]]:
    document = reply.document() if reply.is_ok else None
    tasks = document.get("tasks") if isinstance(document, dict) else None
    if not isinstance(tasks, list):
        raise refusal(reply, f"GET {_PATH}")
    return tasks
