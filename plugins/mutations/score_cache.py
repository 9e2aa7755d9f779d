"""Scores of finished structures in a file, so that an interrupted comparison of mutation models resumes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from protgraph import __version__
from protgraph.data.cache_key import digest
from protgraph.design.mutation import BindingScorer
from protgraph.file_io import append_line, file_sha256, read_json_lines
from protgraph.structure import Residues
from protgraph.structure.mutation import Mutation, MutationScorer

__all__ = ["ScoreCache", "scorer_digest"]


class ScoreCache:
    """Scores of variants by scorer and structure, in a file of JSON lines.

    Parameters
    ----------
    path : str or Path, optional
        File; a line is added when a structure is finished. None: nothing is kept.

    Notes
    -----
    A line is found again only for the same structure file, variants, options and weights of a scorer, and versions of
    protgraph and torch.
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
        source: Path | None = None,
        partners: Sequence[Sequence[str]] | None = None,
    ) -> np.ndarray:
        """Return the scores ``(V,)`` of variants of a structure, from the file if it has them.

        Parameters
        ----------
        scorer : MutationScorer
        residues : Residues
        variants : sequence of sequence of Mutation
        source : Path, optional
            Structure file of ``residues``; without it, nothing is kept.
        partners : sequence of sequence of str, optional
            The score is that of the complex minus that of these partners.
        """
        used = scorer if partners is None else BindingScorer(scorer, partners)
        if self.path is None or source is None:
            return used.score(residues, variants)
        if id(scorer) not in self._scorers:
            self._scorers[id(scorer)] = scorer_digest(scorer)
        texts = [",".join(map(str, variant)) for variant in variants]
        versions = [__version__, torch.__version__]
        key = digest(self._scorers[id(scorer)], file_sha256(source), texts, partners, versions)
        if key in self._known:
            self.found += 1
            return np.array(self._known[key], np.float64)
        scores = used.score(residues, variants)
        values = [float(x) if np.isfinite(x) else None for x in scores]
        append_line(self.path, json.dumps({"key": key, "scorer": used.name, "scores": values}))
        return scores


def scorer_digest(scorer: object) -> str:
    """Return the digest of a scorer: its class, its options, and the weights of its models."""
    parts: list[object] = [type(scorer).__module__, type(scorer).__qualname__]
    for name, value in sorted(vars(scorer).items()):
        if isinstance(value, str | int | float | bool):
            parts.append([name, value])
        for item in value if isinstance(value, list | tuple) else [value]:
            if isinstance(item, nn.Module):
                parts.append(_weights_digest(item))
            elif hasattr(item, "score") and not isinstance(item, type):
                parts.append(scorer_digest(item))
    return digest(*parts)


def _weights_digest(module: nn.Module) -> str:
    whole = hashlib.sha256()
    for name, value in sorted(module.state_dict().items()):
        whole.update(name.encode())
        if isinstance(value, torch.Tensor):
            whole.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return whole.hexdigest()
