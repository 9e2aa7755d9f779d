"""Values of command-line parameters: an empty one is an error, and an error names the value."""

from __future__ import annotations

from typing import Any

import typer

__all__ = ["check_parameters"]

_MAY_BE_EMPTY = ("unknown",)  # '' means that no text marks an unknown label


def check_parameters(command: Any) -> None:
    """Make a command refuse empty values, and name a value of the wrong type in its error.

    An empty value is usually an unset variable of the shell: ``--data "$FOLDER"``. As a path it would be the current
    folder, and as a selection of residues all of them.
    """
    for parameter in command.params:
        parameter.process_value = _Checked(parameter)


class _Checked:
    """``process_value`` of one parameter, with the checks."""

    def __init__(self, parameter: Any) -> None:
        self.parameter = parameter
        self.process = parameter.process_value

    def __call__(self, ctx: Any, value: Any) -> Any:
        values = list(value) if isinstance(value, list | tuple) else [value]
        source = ctx.get_parameter_source(self.parameter.name)
        is_given = source is not None and source.name != "DEFAULT"
        if "" in values and is_given and self.parameter.name not in _MAY_BE_EMPTY:
            raise typer.BadParameter(
                "'' is empty. Give a value; if it comes from a variable of the shell, set it.",
                ctx=ctx,
                param=self.parameter,
            )
        try:
            return self.process(ctx, value)
        except typer.BadParameter as e:
            texts = [repr(v) for v in values if isinstance(v, str)]
            if texts and not any(text.strip("'") in e.message for text in texts):
                e.message = f"{', '.join(texts)}. {e.message}"
            raise
