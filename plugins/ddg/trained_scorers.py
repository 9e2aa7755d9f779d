"""Scorers ``ddg`` and ``ddg_binding``: changes of the free energies of folding and binding by trained models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from protgraph_plugins.mutations import DDG_UNIT, Mutation, ResidueIndex, mutation_graph
from protgraph_plugins.trained import DDG, DDG_BINDING

from protgraph import Residues, TrainedModel, load_checkpoint
from protgraph.checkpoint import CallRule, Checkpoint, find_card
from protgraph.data.graph import ProteinGraph, collate
from protgraph.errors import CheckpointError, SelectionError
from protgraph.evaluation import evaluation_mode
from protgraph.model import find_device
from protgraph.structure import ALPHABET

__all__ = ["TrainedBindingScorer", "TrainedMutationScorer"]
ENTRY_POINTS = {"protgraph.mutation_scorers": {"ddg": "TrainedMutationScorer", "ddg_binding": "TrainedBindingScorer"}}

_BATCH = 256  # variants


@dataclass(frozen=True)
class _ScoredGroup:
    """Mutations of a variant in chains that are scored together, without the other chains."""

    chains: tuple[str, ...]
    variant: int
    mutations: tuple[Mutation, ...]

    @property
    def site(self) -> tuple[str, ...]:
        """Ids of the mutated residues: groups with the same chains and site have the same features."""
        return tuple(m.residue for m in self.mutations)


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
    trained: ClassVar[TrainedModel] = DDG

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
        card = self.trained.card() if weights is None else find_card(weights)
        self.calls: tuple[CallRule, ...] = () if card is None else tuple(card.calls)

    def score(self, residues: Residues, variants: Sequence[Sequence[Mutation]]) -> np.ndarray:
        """Return ΔΔG ``(V,)`` float64 of variants, each with all of its mutations together, every chain alone.

        Raises
        ------
        MutationError
            A mutation does not fit the structure.
        """
        return self.score_members(residues, variants).mean(0)

    def score_members(self, residues: Residues, variants: Sequence[Sequence[Mutation]]) -> np.ndarray:
        """Return ΔΔG by each member ``(M, V)`` float64; :meth:`score` returns their mean."""
        return self._scores(residues, variants, [(name,) for name in residues.chain_names])

    def score_complex(self, residues: Residues, variants: Sequence[Sequence[Mutation]]) -> np.ndarray:
        """Return ΔΔG ``(V,)`` float64 with the other chains as surroundings, e.g. for differences of two complexes.

        The model was not trained on complexes.
        """
        return self._scores(residues, variants, [tuple(residues.chain_names)]).mean(0)

    @torch.no_grad()
    def _scores(
        self, residues: Residues, variants: Sequence[Sequence[Mutation]], chain_groups: Sequence[tuple[str, ...]]
    ) -> np.ndarray:
        """Return ΔΔG by each member ``(M, V)``, summed over groups of chains that are scored without the others."""
        index = ResidueIndex(residues)
        is_complete = residues.backbone_mask.all(1)
        scores = np.zeros((len(self.members), len(variants)))
        groups: list[_ScoredGroup] = []
        for number, variant in enumerate(variants):
            if not is_complete[index.rows(variant)].all():
                scores[:, number] = np.nan
                continue
            changed = sorted((m for m in variant if not m.is_synonymous), key=lambda m: m.residue)
            for chains in chain_groups:
                mutations = tuple(m for m in changed if m.chain in chains)
                if mutations:
                    groups.append(_ScoredGroup(chains, number, mutations))
        # Features of the same chains and mutated residues are computed once, so groups with the same follow each other.
        groups.sort(key=lambda group: (chain_groups.index(group.chains), group.site))
        for start in range(0, len(groups), _BATCH):
            batch = groups[start : start + _BATCH]
            values = self._predict(self._graphs(residues, batch))
            np.add.at(scores, (slice(None), [group.variant for group in batch]), values)
        return scores

    def _graphs(self, residues: Residues, groups: Sequence[_ScoredGroup]) -> list[ProteinGraph]:
        """Return the graph of each group."""
        graphs: list[ProteinGraph] = []
        last, alone, graph = None, residues, None
        for group in groups:
            if last is None or group.chains != last.chains:
                has_all = len(group.chains) == len(residues.chain_names)
                alone = residues if has_all else residues.chains(list(group.chains))
            if last is None or (group.chains, group.site) != (last.chains, last.site):
                graph = mutation_graph(alone, group.mutations, self.members[0].plan)
            graphs.append(_with_types(graph, group.mutations))
            last = group
        return graphs

    def _predict(self, graphs: Sequence[ProteinGraph]) -> np.ndarray:
        """Return the prediction of each member, ``(M, G)``."""
        predictions = []
        for member in self.members:
            with evaluation_mode(member) as device:
                predictions.append(member(collate(graphs).to(device))["logits"][:, 0].double().cpu().numpy())
        return np.stack(predictions)


def _with_types(site: ProteinGraph, mutations: Sequence[Mutation]) -> ProteinGraph:
    """Return a graph with the types of other mutations of the same residues."""
    ids = site.residue_ids.tolist()
    rows = [ids.index(m.residue) for m in mutations]
    graph = site.clone()
    letters = {"wild_type": [m.wild_type for m in mutations], "mutant": [m.mutant for m in mutations]}
    for name, letters_of_field in letters.items():
        values = site[name].clone()
        values[rows] = torch.tensor([ALPHABET.index(letter) for letter in letters_of_field])
        graph[name] = values
    return graph


class TrainedBindingScorer(TrainedMutationScorer):
    """ΔΔG of binding of variants of a complex, kcal/mol, by the mean of the members of a trained model.

    Parameters
    ----------
    weights : str, optional
        Checkpoint of a model with the head ``mutation``. Default: the trained model ``ddg_binding``.
    device : str
        "auto", "cpu", "cuda" or "cuda:1".

    Raises
    ------
    CheckpointError
        The checkpoint cannot be read, or does not predict mutations.

    Notes
    -----
    Partners are those of the residues (``--partners H,L/A``); a structure with two chains needs none. All mutations of
    a variant are in one graph, without the types that change. NaN at residues without all of N, CA, C and O.
    """

    trained: ClassVar[TrainedModel] = DDG_BINDING
    convention = "ΔΔG of binding = R T ln(Kd of mutant / Kd of wild type), kcal/mol; positive = weaker binding"
    column = "ddg_binding_kcal_mol"

    def score(self, residues: Residues, variants: Sequence[Sequence[Mutation]]) -> np.ndarray:
        """Return ΔΔG of binding ``(V,)`` float64 of variants, each with all of its mutations together.

        Raises
        ------
        MutationError
            A mutation does not fit the structure.
        SelectionError
            The structure has one chain, or more than two and no partners, or a mutation is in a chain of no partner.
        """
        return self.score_binding(_with_partners(residues), variants)

    def score_members(self, residues: Residues, variants: Sequence[Sequence[Mutation]]) -> np.ndarray:
        """Return ΔΔG of binding by each member ``(M, V)`` float64; :meth:`score` returns their mean."""
        residues, index = _with_partners(residues), ResidueIndex(residues)
        for variant in variants:
            index.rows(variant)
            self.check_variant(residues, variant)
        both = residues.select(residues.side >= 0)
        return self._scores(both, variants, [tuple(both.chain_names)])

    def score_binding(self, residues: Residues, variants: Sequence[Sequence[Mutation]]) -> np.ndarray:
        """Return ΔΔG of binding ``(V,)`` float64 of a complex that has partners; chains of none are not read."""
        return self.score_members(residues, variants).mean(0)

    def score_complex(self, residues: Residues, variants: Sequence[Sequence[Mutation]]) -> np.ndarray:
        """Return ΔΔG of binding ``(V,)`` float64, as :meth:`score` does."""
        return self.score(residues, variants)

    def check_variant(self, residues: Residues, variant: Sequence[Mutation]) -> None:
        """Raise :class:`SelectionError` if there are no partners, or a mutation is in a chain of none."""
        partners = _with_partners(residues).partners
        for m in variant:
            if not any(m.chain in names for names in partners or ()):
                raise SelectionError(
                    f"chain of no partner: {m} ({residues.name}). Partners: {'/'.join(map(','.join, partners or ()))}. "
                    "Mutate a chain of a partner, or give others."
                )


def _with_partners(residues: Residues) -> Residues:
    """Return a complex with its partners; those of a structure with two chains are the chains.

    Raises
    ------
    SelectionError
        There is one chain, or more than two and no partners.
    """
    if residues.partners is not None:
        return residues
    names = residues.chain_names
    if len(names) == 2:
        return replace(residues, partners=tuple((name,) for name in names))
    listed = ", ".join(map(repr, names))
    if len(names) < 2:
        raise SelectionError(
            f"no complex: {residues.name} has one chain, {listed}. A model of binding needs two partners. Give a "
            "structure of the complex, or --assembly 1; --model ddg is for folding."
        )
    raise SelectionError(
        f"partners unknown: {residues.name} has the chains {listed}. Give the chains of both sides, e.g. "
        f"--partners {names[0]}/{names[1]}."
    )
