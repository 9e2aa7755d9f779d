"""Names of trained models in the spec and in the tables of a benchmark."""

from __future__ import annotations

from pathlib import Path

from protgraph import registry
from protgraph.errors import UnknownNameError, suggest

__all__ = ["find_trained", "trained_label"]


def trained_label(name: str) -> str:
    """Return the name of a trained model in tables: its name, for a file that of the file or of its recipe's folder."""
    if name not in registry.trained_models:
        path = Path(name).resolve()
        name = path.parent.name if path.name == "model.safetensors" else path.stem
    return f"trained:{name}"


def find_trained(name: str) -> None:
    """Raise :class:`UnknownNameError` if a name is neither a trained model nor a file."""
    if name not in registry.trained_models and not Path(name).is_file():
        hint = suggest(name, registry.trained_models.names())
        raise UnknownNameError(f"{name!r}.{hint} Allowed: a trained model, 'protgraph list trained_models', or a file.")
