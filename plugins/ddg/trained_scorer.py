"""Scorer ``ddg``: change of the folding free energy on mutation by a trained model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from protgraph_plugins import trained

from protgraph import Residues
from protgraph.data.graph.protein_graph import collate
from protgraph.errors import CheckpointError
from protgraph.structure.mutation import DDG_UNIT, Mutation, find_residues
from protgraph.structure.residues.alphabet import ALPHABET
from protgraph.task.mutation_graph import NEAREST, mutation_graph
from protgraph.train import TrainedModel
from protgraph.train.checkpoint import Checkpoint, load_checkpoint
from protgraph.train.config import find_device
from protgraph.train.evaluate import evaluation_mode

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
    residues share one graph, which does not have the types that change.
    """

    unit = DDG_UNIT
    recipe = DDG_MODEL.recipe

    def __init__(self, *, weights: str | None = None, device: str = "auto") -> None:
        self.checkpoint: Checkpoint = DDG_MODEL.checkpoint() if weights is None else load_checkpoint(weights)
        target = self.checkpoint.model.target
        if target.head_name != "mutation":
            raise CheckpointError(
                f"checkpoint {weights!r} predicts {target.name!r}. Give one with the head 'mutation'."
            )
        self.members = [member.to(find_device(device)) for member in self.checkpoint.members]
        self.name = "ddg" if weights is None else Path(weights).stem
        self.needs_ligands = False

    @torch.no_grad()
    def score(self, residues: Residues, variants: Sequence[Sequence[Mutation]]) -> np.ndarray:
        """Return ΔΔG ``(V,)`` float64 of variants, each with all of its mutations together.

        Raises
        ------
        MutationError
            A mutation does not fit the structure.
        """
        scores = np.zeros(len(variants))
        complete = residues.backbone_mask.all(1)
        chains: dict[str, Residues] = {}
        graphs: dict[tuple[str, ...], object] = {}
        pending: list[tuple[int, object]] = []
        for number, variant in enumerate(variants):
            rows = find_residues(residues, variant)
            if not complete[rows].all():
                scores[number] = np.nan
                continue
            for name in dict.fromkeys(m.chain for m in variant):
                own = [m for m in variant if m.chain == name and not m.is_synonymous]
                if own:
                    chains.setdefault(name, residues.chains([name]))
                    pending.append((number, self._graph(chains[name], own, graphs)))
            if len(pending) >= _BATCH:
                self._add(scores, pending)
        self._add(scores, pending)
        return scores

    def _graph(self, residues: Residues, mutations: list[Mutation], graphs: dict) -> object:
        """Return the graph of a variant; features of the same mutated residues are computed once."""
        ordered = sorted(mutations, key=lambda m: m.residue)
        key = tuple(m.residue for m in ordered)
        if key not in graphs:
            graphs.clear()  # variants of a scan follow each other by residue
            graphs[key] = mutation_graph(residues, ordered, self.members[0].plan, nearest=NEAREST)
            return graphs[key]
        known = graphs[key]
        rows = [known.residue_ids.tolist().index(residue) for residue in key]
        graph = known.clone()
        for name, letters in (("wild_type", [m.wild_type for m in ordered]), ("mutant", [m.mutant for m in ordered])):
            values = known[name].clone()
            values[rows] = torch.tensor([ALPHABET.index(letter) for letter in letters])
            graph[name] = values
        return graph

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
