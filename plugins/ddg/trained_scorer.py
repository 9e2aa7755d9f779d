"""Scorer ``ddg``: change of the folding free energy on mutation by a trained model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from protgraph_plugins import trained

from protgraph import Residues
from protgraph.checkpoint import TrainedModel
from protgraph.checkpoint.checkpoint_file import Checkpoint, load_checkpoint
from protgraph.data.graph.protein_graph import ProteinGraph, collate
from protgraph.errors import CheckpointError
from protgraph.evaluation.evaluation import evaluation_mode
from protgraph.model.devices import find_device
from protgraph.structure.mutation import DDG_UNIT, Mutation, ResidueIndex
from protgraph.structure.residues.alphabet import ALPHABET
from protgraph.task.mutation_graph import NEAREST, mutation_graph

__all__ = ["DDG_MODEL", "TrainedMutationScorer"]
ENTRY_POINTS = {"protgraph.mutation_scorers": {"ddg": "TrainedMutationScorer"}}

_BATCH = 256  # variants
DDG_MODEL = TrainedModel(Path(trained.__file__).parent / "ddg", check_code=False)


class TrainedMutationScorer:
    """ΔΔG = ΔG(mutant) − ΔG(wild type) of variants, kcal/mol, by the mean of the members of a trained model.

    Parameters
    ----------
    weights : str, optional
        Checkpoint of a model with the head ``mutation``. Default: the trained model ``ddg``.
    device : str
        "auto", "cpu", "cuda" or "cuda:1".

    Raises
    ------
    CheckpointError
        The checkpoint cannot be read, or does not predict mutations.

    Notes
    -----
    The model was trained on single chains: every chain is scored alone, and a variant with mutations in several chains
    is the sum over its chains. NaN at residues without all of N, CA, C and O. All variants with the same mutated
    residues share one graph, which does not have the types that change; they need not follow each other.
    """

    unit = DDG_UNIT
    trained: ClassVar[TrainedModel] = DDG_MODEL
    recipe = DDG_MODEL.recipe

    def __init__(self, *, weights: str | None = None, device: str = "auto") -> None:
        self.checkpoint: Checkpoint = self.trained.checkpoint() if weights is None else load_checkpoint(weights)
        target = self.checkpoint.model.target
        if target.head_name != "mutation":
            raise CheckpointError(
                f"checkpoint {weights!r} predicts {target.name!r}. Give one with the head 'mutation'."
            )
        self.members = [member.to(find_device(device)) for member in self.checkpoint.members]
        self.name = self.trained.folder.name if weights is None else Path(weights).stem
        self.needs_ligands = False

    def score(self, residues: Residues, variants: Sequence[Sequence[Mutation]]) -> np.ndarray:
        """Return ΔΔG ``(V,)`` float64 of variants, each with all of its mutations together, every chain alone.

        Raises
        ------
        MutationError
            A mutation does not fit the structure.
        """
        return self._scores(residues, variants, [[name] for name in residues.chain_names])

    def score_complex(self, residues: Residues, variants: Sequence[Sequence[Mutation]]) -> np.ndarray:
        """Return ΔΔG ``(V,)`` float64 with the other chains as surroundings, e.g. for differences of two complexes.

        The model was not trained on complexes.
        """
        return self._scores(residues, variants, [list(residues.chain_names)])

    @torch.no_grad()
    def _scores(
        self, residues: Residues, variants: Sequence[Sequence[Mutation]], groups: Sequence[Sequence[str]]
    ) -> np.ndarray:
        """Return ΔΔG ``(V,)``, summed over groups of chains that are scored without the others."""
        index, complete = ResidueIndex(residues), residues.backbone_mask.all(1)
        scores = np.zeros(len(variants))
        parts: list[tuple[int, int, list[Mutation]]] = []
        for number, variant in enumerate(variants):
            if not complete[index.rows(variant)].all():
                scores[number] = np.nan
                continue
            for group, names in enumerate(groups):
                own = [m for m in variant if m.chain in names and not m.is_synonymous]
                if own:
                    parts.append((group, number, sorted(own, key=lambda m: m.residue)))
        pending: list[tuple[int, object]] = []
        last, graph, alone = None, None, residues
        for group, number, own in sorted(parts, key=lambda part: (part[0], [m.residue for m in part[2]])):
            key = group, tuple(m.residue for m in own)
            if last is None or last[0] != group:
                alone = residues if len(groups) == 1 else residues.chains(groups[group])
            if key != last:  # features of the same mutated residues are computed once
                last, graph = key, mutation_graph(alone, own, self.members[0].plan, nearest=NEAREST)
            pending.append((number, _with_types(graph, own)))
            if len(pending) >= _BATCH:
                self._add(scores, pending)
        self._add(scores, pending)
        return scores

    def _add(self, scores: np.ndarray, pending: list[tuple[int, object]]) -> None:
        """Add the mean predictions of graphs to the scores of their variants, and empty the list."""
        if not pending:
            return
        numbers, graphs = zip(*pending, strict=True)
        pending.clear()
        total = np.zeros(len(graphs))
        for member in self.members:
            with evaluation_mode(member) as device:
                total += member(collate(graphs).to(device))["logits"][:, 0].double().cpu().numpy()
        np.add.at(scores, list(numbers), total / len(self.members))


def _with_types(known: ProteinGraph, mutations: Sequence[Mutation]) -> ProteinGraph:
    """Return a graph with the types of other mutations of the same residues."""
    ids = known.residue_ids.tolist()
    rows = [ids.index(m.residue) for m in mutations]
    graph = known.clone()
    letters = {"wild_type": [m.wild_type for m in mutations], "mutant": [m.mutant for m in mutations]}
    for name, new in letters.items():
        values = known[name].clone()
        values[rows] = torch.tensor([ALPHABET.index(letter) for letter in new])
        graph[name] = values
    return graph
