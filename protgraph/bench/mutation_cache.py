"""Scores of finished structures in a file, so that an interrupted comparison of mutation models resumes."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np
import torch
from torch import nn

from protgraph.data.cache_key import code_digest, component_digest, digest
from protgraph.design.mutation import BindingScorer
from protgraph.file_io import append_line, read_json_lines
from protgraph.structure import Ligands, Residues
from protgraph.structure.mutation import Mutation, MutationScorer

__all__ = ["ScoreCache", "scorer_digest"]

_CORE = ("data", "design", "featurize", "model", "nn", "ops", "structure", "task")  # packages that scores depend on
_DIGESTED = frozenset({"protgraph", "torch", "torch_geometric", "e3nn"})  # by their packages above, or their versions


class ScoreCache:
    """Scores of variants by scorer and structure, in a file of JSON lines.

    Parameters
    ----------
    path : str or Path, optional
        File; a line is added when a structure is finished. None: nothing is kept.

    Notes
    -----
    A line is found again only for the same structure with its ligands (all fields but the loss report), variants,
    options, weights and code of a scorer.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        rows = [] if self.path is None else read_json_lines(self.path)
        self._known = {row["key"]: row["scores"] for row in rows if {"key", "scores"} <= row.keys()}
        self._scorers: dict[int, str] = {}  # by identity: hashing the weights takes longer than most structures
        self.found = 0

    def score(
        self,
        scorer: MutationScorer,
        residues: Residues,
        variants: Sequence[Sequence[Mutation]],
        *,
        partners: Sequence[Sequence[str]] | None = None,
    ) -> np.ndarray:
        """Return the scores ``(V,)`` of variants of a structure, from the file if it has them.

        With ``partners``, the score of the complex minus that of its partners.
        """
        used = scorer if partners is None else BindingScorer(scorer, partners)
        if self.path is None:
            return used.score(residues, variants)
        if id(scorer) not in self._scorers:
            self._scorers[id(scorer)] = scorer_digest(scorer)
        texts = [",".join(map(str, variant)) for variant in variants]
        key = digest(self._scorers[id(scorer)], _content(residues), texts, partners)
        if key in self._known:
            self.found += 1
            return np.array(self._known[key], np.float64)
        scores = used.score(residues, variants)
        values = [float(x) if np.isfinite(x) else None for x in scores]
        append_line(self.path, json.dumps({"key": key, "scorer": used.name, "scores": values}))
        return scores


def _content(part: Residues | Ligands) -> list[object]:
    """Return all fields but the loss report, by name, with arrays as digests."""
    content: list[object] = []
    for field in fields(part):
        value = getattr(part, field.name)
        if isinstance(value, np.ndarray):
            plain = value.dtype.kind in "biuf"
            data = np.ascontiguousarray(value).tobytes() if plain else json.dumps(value.tolist()).encode()
            content.append([field.name, value.shape, value.dtype.str if plain else "text", digest(data)])
        elif isinstance(value, Ligands):
            content.append([field.name, _content(value)])
        elif field.name != "report":
            content.append([field.name, value])
    return content


def scorer_digest(scorer: object) -> str:
    """Return the digest of a scorer: its options, the weights of its models, and the code that they use."""
    is_core = type(scorer).__module__.partition(".")[0] in _DIGESTED
    own = None if is_core else component_digest(scorer) or time.time_ns()
    core = code_digest(*(f"protgraph.{package}" for package in _CORE))
    parts: list[object] = [type(scorer).__qualname__, own, core, torch.__version__]
    for name, value in sorted(vars(scorer).items()):
        if isinstance(value, str | int | float | bool):
            parts.append([name, value])
        for item in value if isinstance(value, list | tuple) else [value]:
            if isinstance(item, nn.Module):
                parts.append(_module_digest(item))
            elif hasattr(item, "score") and not isinstance(item, type):
                parts.append(scorer_digest(item))
    return digest(*parts)


def _module_digest(module: nn.Module) -> str:
    whole = hashlib.sha256()
    for name, value in sorted(module.state_dict().items()):
        whole.update(name.encode())
        if isinstance(value, torch.Tensor):
            whole.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    others = {type(part) for part in module.modules() if type(part).__module__.partition(".")[0] not in _DIGESTED}
    code = sorted({component_digest(kind) or str(time.time_ns()) for kind in others})  # unknown code: never kept
    return digest(whole.hexdigest(), code)
