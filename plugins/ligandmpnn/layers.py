"""Message passing on context atoms: ``context_atom_encoder`` and ``context_encoder``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import torch
from protgraph_plugins.ligandmpnn.fields import num_pairs
from protgraph_plugins.proteinmpnn import NodeUpdate
from torch import Tensor, nn
from torch.nn.functional import gelu

from protgraph import FieldSpec, GraphLayer
from protgraph.data import Conformity
from protgraph.errors import WiringError

__all__ = ["ContextAtomEncoder", "ContextEncoder"]
ENTRY_POINTS = {
    "protgraph.layers": {"context_atom_encoder": "ContextAtomEncoder", "context_encoder": "ContextEncoder"},
}

#: Pairs of atoms per block without gradients: 2048 × 128 float32 take 1 MB and fit the cache of a core.
_PAIRS = 2048
_CHECKED = FieldSpec("context_h", "node", "400x0e", shape=(25, 16), chiral=True)  # inputs of the conformity suite
_FED = {"context_h": _CHECKED, "context_attr": _CHECKED.as_("context_attr")}


def _atoms_of(layer: GraphLayer, name: str) -> tuple[int, int]:
    """Return k and the width C of a field ``(N, k, C)``."""
    spec = layer.fields[name]
    if len(spec.trailing_shape) != 2 or not spec.is_scalar:
        raise WiringError(
            f"wrong shape of {spec.name!r}: {spec.irreps}, (N, {', '.join(map(str, spec.trailing_shape))}). "
            f"{type(layer).__name__} requires {name!r} as scalars of k context atoms, (N, k, C)."
        )
    return spec.trailing_shape[0], spec.trailing_shape[1]


def _occupied(mask: Tensor, dim: int) -> Tensor:
    """Return the rows (dim 1) or columns (dim 0) of ``(N, k)`` with an atom; all on a GPU or while compiling."""
    if mask.device.type != "cpu" or torch.compiler.is_compiling():  # counting them needs their values on the host
        return torch.arange(mask.size(1 - dim), device=mask.device)
    return mask.any(dim).nonzero().flatten()


def _blocks(rows: Tensor, pairs_per_row: int) -> Iterator[Tensor]:
    """Split rows ``(R,)`` into blocks of some pairs on the CPU without gradients; else one block."""
    if torch.compiler.is_compiling():
        yield rows
        return
    if len(rows) == 0:
        return
    if torch.is_grad_enabled() or rows.device.type != "cpu":
        yield rows
    else:
        yield from rows.split(max(_PAIRS // pairs_per_row, 1))


class ContextAtomEncoder(GraphLayer):
    """Message passing between the context atoms of each residue, from their pairwise distances.

    A residue near a ligand then sees what molecule the atoms are of, not only their elements.
    With ``e_ab = norm(V r_ab + c)`` of the radial bases r of all atoms b of the residue, a itself among them:
    ``y_a ← norm(y_a + 1/30 Σ_b W₃ g(W₂ g(A y_a + B e_ab + b₁) + b₂) + b₃)``, ``y_a ← norm(y_a + FFN(y_a))``.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
    scale : float
        Constant divisor of the sum of messages (not the number of atoms).
    dropout : float
        Probability.

    Notes
    -----
    Reads: context_h ``(N, k, C)`` and context_pair_rbf ``(N, k (k + 1) / 2, D)`` scalars, context_mask ``(N, k)``.
    Writes: context_h ``(N, k, C)``, 0 for missing atoms.

    e is computed once per pair for both directions, and W₃ after the sum, only for residues with context atoms and for
    columns with atoms.

    In the published network all rounds share V, c, the norm and a linear map before B. The weights are converted.

    References
    ----------
    Dauparas et al. 2025, doi:10.1038/s41592-025-02626-1, Methods (ligand graph encoder).
    """

    reads: ClassVar[tuple[str, ...]] = ("context_h", "context_pair_rbf", "context_mask")
    writes: ClassVar[tuple[str, ...]] = ("context_h",)
    conformity: ClassVar[Conformity] = Conformity(inputs=_FED)

    def __init__(self, fields: Mapping[str, FieldSpec], *, scale: float = 30.0, dropout: float = 0.1) -> None:
        super().__init__(fields)
        k, dim = _atoms_of(self, "context_h")
        rows, basis = _atoms_of(self, "context_pair_rbf")
        if rows != num_pairs(k):
            raise WiringError(
                f"context_atom_encoder reads {rows} pairs, but {k} atoms have {num_pairs(k)}. Use the same k in all "
                "featurizers."
            )
        self.pair = nn.Linear(basis, dim)
        self.pair_norm = nn.LayerNorm(dim)
        self.edge = nn.Linear(dim, dim)
        self.target = nn.Linear(dim, dim, bias=False)
        self.middle = nn.Linear(dim, dim)
        self.update = NodeUpdate(dim, scale, dropout)
        self.register_buffer("place", _pair_table(k), persistent=False)
        self.declare(context_h=FieldSpec("context_h", "node", f"{k * dim}x0e", shape=(k, dim)))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Pass messages between the context atoms of each residue, ``context_h (N, M, C)``."""
        y, basis, mask = f["context_h"], f["context_pair_rbf"], f["context_mask"]
        rows_with_atoms = _occupied(mask, 1)
        columns = _occupied(mask, 0)
        blocks = []
        for rows in _blocks(rows_with_atoms, mask.size(1) ** 2):
            blocks.append(self._round(y[rows][:, columns], basis[rows], mask[rows][:, columns], columns))

        # 0 where there is no atom.
        encoded = y.new_zeros(len(y), len(columns), y.size(2))
        if blocks:
            encoded = encoded.index_copy(0, rows_with_atoms, torch.cat(blocks))
        return {"context_h": y.new_zeros(y.shape).index_copy(1, columns, encoded)}

    def _round(self, y: Tensor, basis: Tensor, mask: Tensor, columns: Tensor) -> Tensor:
        """Return ``(R, c, C)`` of R residues and c columns of atoms, from bases ``(R, P, D)`` of all pairs."""
        c = len(columns)

        # Features of the pairs of these columns, each once, then for both directions.
        a, b = torch.triu_indices(c, c, device=y.device)
        pair_index = self.place[columns[a], columns[b]]  # (p,)
        e = self.edge(self.pair_norm(self.pair(basis[:, pair_index])))  # (R, p, C)
        both_directions = _pair_table(c, y.device).flatten()
        z = e.index_select(1, both_directions).view(len(y), c, c, -1) + self.target(y)[:, :, None]

        message = gelu(self.middle(gelu(z))) * mask[:, None, :, None]  # (R, c, c, C)
        count = mask.sum(1, keepdim=True)[:, None].to(y.dtype)  # (R, 1, 1)
        return self.update(y, message.sum(2), count) * mask[..., None]


def _pair_table(k: int, device: torch.device | None = None) -> Tensor:
    """Return the number of the pair of two atoms, in either order, ``(k, k)`` int64."""
    table = torch.zeros(k, k, dtype=torch.long, device=device)
    a, b = torch.triu_indices(k, k, device=device)
    number = torch.arange(len(a), device=device)
    table[a, b] = number
    table[b, a] = number
    return table


class ContextEncoder(GraphLayer):
    """Update residue features from their context atoms.

    ``h_i ← norm(h_i + 1/30 Σ_a W₃ g(W₂ g(A h_i + B e_ia + C y_a + b₁) + b₂) + b₃)``, ``h_i ← norm(h_i + FFN(h_i))``.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
    scale : float
        Constant divisor of the sum of messages (not the number of atoms).
    dropout : float
        Probability.

    Notes
    -----
    Reads: h ``(N, C)``; context_attr ``(N, k, D)``, e of residue–atom pairs; context_h ``(N, k, Y)``, y of atoms;
    context_mask ``(N, k)``. Writes: h ``(N, C)``. All scalars.

    A residue without context atoms is updated too, without messages.

    References
    ----------
    Dauparas et al. 2025, doi:10.1038/s41592-025-02626-1, Methods (protein–ligand graph encoder).
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "context_attr", "context_h", "context_mask")
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity: ClassVar[Conformity] = Conformity(inputs=_FED)

    def __init__(self, fields: Mapping[str, FieldSpec], *, scale: float = 30.0, dropout: float = 0.1) -> None:
        super().__init__(fields)
        dim = self.scalar_width("h")
        k_edges, edge = _atoms_of(self, "context_attr")
        k_atoms, atom = _atoms_of(self, "context_h")
        if k_edges != k_atoms:
            raise WiringError(
                f"context_encoder reads {k_edges} and {k_atoms} context atoms. Use the same k in all featurizers."
            )
        self.target = nn.Linear(dim, dim, bias=False)
        self.edge = nn.Linear(edge, dim)
        self.source = nn.Linear(atom, dim, bias=False)
        self.middle = nn.Linear(dim, dim)
        self.update = NodeUpdate(dim, scale, dropout)
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Add the messages of the context atoms to each residue, ``h (N, C)``."""
        h, e, y, mask = f["h"], f["context_attr"], f["context_h"], f["context_mask"]
        rows_with_atoms = _occupied(mask, 1)
        sums = [self._sum(h[rows], e[rows], y[rows], mask[rows]) for rows in _blocks(rows_with_atoms, mask.size(1))]
        total = torch.zeros_like(h)
        if sums:
            total = total.index_copy(0, rows_with_atoms, torch.cat(sums))
        count = mask.sum(1, keepdim=True).to(h.dtype)
        return {"h": self.update(h, total, count)}

    def _sum(self, h: Tensor, e: Tensor, y: Tensor, mask: Tensor) -> Tensor:
        """Return the sums of messages of R residues, ``(R, C)``."""
        z = self.edge(e) + self.source(y) + self.target(h)[:, None]  # (R, k, C)
        message = gelu(self.middle(gelu(z))) * mask[..., None]
        return message.sum(1)
