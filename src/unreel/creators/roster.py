"""Every kind of creator by name. What stands behind a name are the keys that open one."""

from typing import Final

from unreel.core.registry import Lazy, Registry
from unreel.creators.kind import CreatorKeys

FROZEN: Final = "frozen"
"""Clips that the benchmark itself holds: nobody makes them."""

CREATORS: Final[Registry[type[CreatorKeys]]] = Registry(
    "kind of creator",
    {
        "degrade": Lazy("unreel.creators.degrade:DegradeKeys"),
        "diffusers": Lazy("unreel.creators.diffusers:DiffusersKeys"),
        "encoded": Lazy("unreel.arena.injected:EncodedKeys"),
        "endpoint": Lazy("unreel.creators.endpoint.section:EndpointKeys"),
        "folder": Lazy("unreel.creators.folder:FolderKeys"),
        FROZEN: Lazy("unreel.creators.held:HeldKeys"),
        "inject": Lazy("unreel.arena.injected:InjectKeys"),
    },
    group="unreel.creators",
)
