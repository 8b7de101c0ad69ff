"""Registry of the kinds of creators and their config classes."""

from typing import Final

from unreel.core.registry import LazyImport, NameRegistry
from unreel.creators.kind import CreatorKeys

FROZEN: Final = "frozen"
"""Clips that the benchmark itself holds: nobody makes them."""

CREATORS: Final[NameRegistry[type[CreatorKeys]]] = NameRegistry(
    "kind of creator",
    {
        "degrade": LazyImport("unreel.creators.degrade:DegradeKeys"),
        "diffusers": LazyImport("unreel.creators.diffusers:DiffusersKeys"),
        "encoded": LazyImport("unreel.arena.injected:EncodedKeys"),
        "endpoint": LazyImport("unreel.creators.endpoint.section:EndpointKeys"),
        "folder": LazyImport("unreel.creators.folder:FolderKeys"),
        FROZEN: LazyImport("unreel.creators.held:HeldKeys"),
        "inject": LazyImport("unreel.arena.injected:InjectKeys"),
    },
    group="unreel.creators",
)
