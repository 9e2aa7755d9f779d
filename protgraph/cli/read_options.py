"""How structure files are read: one set of options, the same for every command that reads them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, get_type_hints

import typer

__all__ = ["reads_structures"]

Chain = Annotated[list[str] | None, typer.Option(help="Author chain id to take; again for more. All by default.")]
Altloc = Annotated[
    str, typer.Option(help="Alternate location of a residue: occupancy (the highest), first, or an id such as B.")
]
Assembly = Annotated[
    str | None, typer.Option(help="Biological assembly to build, 1 say; its copies of chain A are A, A-2, …")
]
ModelNumber = Annotated[int, typer.Option(help="Which model of a file with several, by its place from 1.")]

#: Option → keyword of :func:`protgraph.structure.io.sources.entries`, type and help, default.
_OPTIONS: dict[str, tuple[str, object, object]] = {
    "chain": ("chains", Chain, None),
    "altloc": ("altloc", Altloc, "occupancy"),
    "assembly": ("assembly", Assembly, None),
    "model_number": ("model", ModelNumber, 1),
}


def reads_structures(*, chains: bool = True) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options ``--chain``, ``--altloc``, ``--assembly`` and ``--model-number``.

    Parameters
    ----------
    chains : bool
        Whether ``--chain`` is one of them; a command may mean more by its chains.

    Returns
    -------
    callable
        A decorator. The command gets a dict as its argument ``reading``: the keywords ``chains``, ``altloc``,
        ``assembly`` and ``model`` of whatever reads files.

    Raises
    ------
    OptionError
        When the command is called: the alternate location or the number of the model has no meaning.
    """
    options = {name: option for name, option in _OPTIONS.items() if chains or name != "chain"}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command, include_extras=True)
        own = [p.replace(annotation=hints[p.name]) for p in signature(command).parameters.values()]
        added = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, (_, annotation, default) in options.items()
        ]
        parameters = [*(p for p in own if p.name != "reading"), *added]

        @wraps(command)
        def run(**given: Any) -> None:
            from protgraph.errors import OptionError
            from protgraph.structure.io.altloc import check_altloc

            reading = {keyword: given.pop(name) for name, (keyword, _, _) in options.items()}
            check_altloc(reading["altloc"])
            if reading["model"] < 1:
                raise OptionError(f"--model-number {reading['model']}: models are counted from 1")
            command(**given, reading=reading)

        run.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": None}
        return run

    return decorate
