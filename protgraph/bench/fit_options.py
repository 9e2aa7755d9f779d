"""Checks of the training options of a spec."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, get_type_hints

from protgraph.errors import OptionError
from protgraph.validation import check_value, unknown_name

__all__ = ["check_fit_options"]


def check_fit_options(options: Mapping[str, Any], config: type) -> None:
    """Check names, types and values of training options; the seed is not one of them.

    Parameters
    ----------
    options : mapping
    config : type
        Class of the training options, :class:`protgraph.train.FitConfig`.
    """
    allowed = [name for name in inspect.signature(config).parameters if name != "seed"]
    hints = get_type_hints(config, include_extras=True)
    for key, value in options.items():
        if key not in allowed:
            raise OptionError(unknown_name(key, allowed))
        check_value(value, hints[key], path=key)
    config(**options)
