"""Names that options of commands accept or complete; packages that add names are asked only if needed."""

from unreel.benchmarks import layout as layouts
from unreel.protocols import protocol as protocols


def list_layout_names() -> list[str]:
    """Return the names of the benchmark layouts, in display order."""
    return layouts.list_layouts()


def list_protocol_names(subject: protocols.Subject | None = None) -> tuple[str, ...]:
    """Return protocol names, about `subject` if given; those of other packages always."""
    return protocols.list_protocol_names(subject)


def fits_built_in_protocol(name: str, subject: protocols.Subject | None) -> bool:
    """Return whether `name` is a protocol of unreel about `subject`; no other package is asked."""
    is_built_in = name in protocols.PROTOCOLS.entries
    return is_built_in and subject in {None, protocols.get_protocol(name).subject}


def list_model_names() -> list[str]:
    """Return the beginnings of a model's name: baselines, `recorded` and `PROVIDER/`."""
    from unreel.reviewers.endpoint.model_address import PROVIDERS
    from unreel.reviewers.registry import ENDPOINT, REVIEWERS

    names = [name for name in REVIEWERS.names() if name != ENDPOINT]
    return names + [f"{provider}/" for provider in sorted(PROVIDERS)]


def list_public_benchmark_names() -> list[str]:
    """Return the names of the public benchmarks of the catalogue."""
    from unreel.catalogue.names import list_entry_names

    return list_entry_names("benchmarks")
