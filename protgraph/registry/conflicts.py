"""Names that several distributions, or a distribution and the running process, provide."""

from __future__ import annotations

from collections.abc import Sequence

from protgraph.errors import DuplicateNameError
from protgraph.registry.component_names import split_distribution
from protgraph.registry.discovery import BUILT_IN
from protgraph.registry.provider import Provider

__all__ = ["check_claims", "conflict_error", "differ", "displaced", "locations"]


def differ(providers: Sequence[Provider]) -> bool:
    """Return True if providers have different objects, without importing them."""
    objects = {id(provider.load()) if provider.is_loaded else provider.ref for provider in providers}
    return len({provider.ref for provider in providers}) > 1 and len(objects) > 1


def displaced(providers: Sequence[Provider]) -> Sequence[Provider]:
    """Return the installed providers of a name that are not available under the name alone, without importing them."""
    if len(providers) < 2 or not differ(providers):
        return []
    return providers[1:] if providers[0].distribution == BUILT_IN else providers


def locations(label: str, providers: Sequence[Provider]) -> str:
    """Return a sentence that locates all providers of a name."""
    return f"{label} is provided by {' and by '.join(provider.description for provider in providers)}."


def conflict_error(kind: str, name: str, providers: Sequence[Provider]) -> DuplicateNameError:
    """Return the error of an ambiguous name, with the names that are not."""
    qualified = " or ".join(repr(provider.qualified_name) for provider in providers if provider.distribution)
    session = f", or {kind}s.unregister({name!r})" if not providers[-1].distribution else ""
    return DuplicateNameError(f"{locations(f'{kind} {name!r}', providers)} Write {qualified}{session}.")


def check_claims(kind: str, name: str, providers: Sequence[Provider], installed: Sequence[Provider]) -> None:
    """Raise if a name is ambiguous, or if its bare name belongs to the built-in distribution; import nothing."""
    if differ(providers):
        raise conflict_error(kind, name, providers)
    bare = split_distribution(name)[1]
    owner, *claims = installed or [None]
    if bare != name and owner is not None and owner.distribution == BUILT_IN and providers[0] in claims:
        raise DuplicateNameError(
            f"{kind} {bare!r} is the name of a component of {BUILT_IN}. {providers[0].description} is available as "
            f"{name!r}."
        )
