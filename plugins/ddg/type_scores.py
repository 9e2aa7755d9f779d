"""Log-probabilities of all residue types at residues whose own type is hidden, by published ProteinMPNN."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
import torch
from protgraph_plugins.design import Decoding, encode
from torch import Tensor

from protgraph import FieldSpec, ProteinModel, Residues, StructureFeaturizer, register_field
from protgraph.data import Conformity
from protgraph.data.graph import field
from protgraph.model import pretrained
from protgraph.structure.residues import UNKNOWN

__all__ = ["NOTHING_HIDDEN", "ProteinMPNNBinding", "ProteinMPNNSite"]
ENTRY_POINTS = {
    "protgraph.featurizers": {"proteinmpnn_binding": "ProteinMPNNBinding", "proteinmpnn_site": "ProteinMPNNSite"}
}

_MODEL = "proteinmpnn.v_48_020"
_KEPT = 4  # backbones with encodings in memory, 25 kB per residue
_TYPES = 20
#: Reason why a featurizer with ``only_hidden`` fails checks that need other values than 0.
NOTHING_HIDDEN = "0 for residues of known type, and all test proteins have known types"

register_field(
    FieldSpec(
        "site_log_probs",
        "node",
        "40x0e",
        chiral=True,
        doc="log p of 20 types by ProteinMPNN: given all other types, and given the backbone alone; type by type",
    )
)
register_field(
    FieldSpec(
        "binding_log_probs",
        "node",
        "40x0e",
        chiral=True,
        doc="site_log_probs in the complex minus those in the partner of the residue alone; type by type",
    )
)
register_field(
    FieldSpec("site_embedding", "node", "128x0e", chiral=True, doc="encoding of the backbone by published ProteinMPNN")
)


class ProteinMPNNSite(StructureFeaturizer):
    """Log-probabilities of the 20 types at each residue by ProteinMPNN ``v_48_020``, without the residue's own type.

    Parameters
    ----------
    only_hidden : bool
        Only for residues of type X, which a task of mutations hides; the others have 0. Saves time.

    Writes
    ------
    site_log_probs : (N, 40) float32, 0e under rotations (chiral), nats
        For type after type: log p given backbone and the types of all other residues, and given the backbone alone;
        minus the mean over the 20 types.
    site_embedding : (N, 128) float32, 0e under rotations (chiral), dimensionless
        Encoding of the backbone.

    Notes
    -----
    0 for residues without all of N, CA, C and O. The first log-probability is of a residue that is decoded after all
    others, and these after none: their states do not depend on types, so that all residues of a protein take one pass
    of the decoder. Encodings of the last backbones are kept. The weights are those of the package ``proteinmpnn``.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187.
    """

    writes: ClassVar[tuple[str, ...]] = ("site_log_probs", "site_embedding")
    conformity = Conformity(tolerance=2e-3)  # neighbors at equal distance change places with rounded coordinates

    def __init__(self, *, only_hidden: bool = False) -> None:
        super().__init__()
        self.only_hidden = only_hidden
        if only_hidden:
            failures = dict.fromkeys(("non_trivial", "every_parameter_learns"), NOTHING_HIDDEN)
            self.conformity = Conformity(tolerance=self.conformity.tolerance, expected_failures=failures)

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        wanted = _wanted(residues, only_hidden=self.only_hidden)
        scores, embedding = _site_scores(residues, wanted)
        return {"site_log_probs": scores.reshape(len(residues), -1), "site_embedding": embedding}


class ProteinMPNNBinding(StructureFeaturizer):
    """Log-probabilities of the 20 types by ProteinMPNN in a complex, minus those in the separated partner.

    Parameters
    ----------
    only_hidden : bool
        Only for residues of type X, which a task of mutations hides; the others have 0. Saves time.

    Writes
    ------
    binding_log_probs : (N, 40) float32, 0e under rotations (chiral), nats
        ``site_log_probs`` of :class:`ProteinMPNNSite` with all partners of :attr:`protgraph.Residues.partners`, minus
        those with the partner of the residue alone.

    Notes
    -----
    Each chain is a partner if none is declared. 0 for residues without all of N, CA, C and O, or of no partner.
    """

    writes: ClassVar[tuple[str, ...]] = ("binding_log_probs",)
    conformity = Conformity(tolerance=2e-3)  # neighbors at equal distance change places with rounded coordinates

    def __init__(self, *, only_hidden: bool = False) -> None:
        super().__init__()
        self.only_hidden = only_hidden
        if only_hidden:
            self.conformity = Conformity(tolerance=2e-3, expected_failures={"non_trivial": NOTHING_HIDDEN})

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        side, total = residues.side, np.zeros((len(residues), _TYPES, 2), np.float32)
        wanted = _wanted(residues, only_hidden=self.only_hidden) & (side >= 0)
        numbers = np.unique(side[side >= 0])
        if wanted.any() and len(numbers) > 1:
            inside = side >= 0
            total[inside] = _site_scores(residues.select(inside), wanted[inside])[0]
            for number in numbers:
                own = side == number
                total[own] -= _site_scores(residues.select(own), wanted[own])[0]
        return {"binding_log_probs": total.reshape(len(residues), -1)}


def _wanted(residues: Residues, *, only_hidden: bool) -> np.ndarray:
    """Return the residues ``(N,)`` bool with a complete backbone, and those of type X only if wanted."""
    complete = residues.backbone_mask.all(1)
    return complete & (residues.aatype == UNKNOWN) if only_hidden else complete


def _site_scores(residues: Residues, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores ``(N, 20, 2)`` of types and the encodings ``(N, C)`` of wanted residues; 0 for the others."""
    scores = np.zeros((len(residues), _TYPES, 2), np.float32)
    embedding = np.zeros((len(residues), field("site_embedding").dim), np.float32)
    if wanted.any():
        complete = residues.backbone_mask.all(1)
        part = residues.select(complete)
        encoded = _encoded(part)
        rows = torch.from_numpy(np.flatnonzero(wanted[complete]))
        scores[wanted] = encoded.log_probs(rows, torch.from_numpy(np.array(part.aatype))).numpy()
        embedding[wanted] = encoded.decoding.fields["h"][rows].numpy()
    return scores, embedding


@dataclass(frozen=True, eq=False)
class _Encoded:
    """A backbone, with the states of residues that are decoded first, which do not depend on types.

    Parameters
    ----------
    decoding : Decoding
    state : DecoderState
        Of the decoder, with the contributions of edges.
    states : list of Tensor
        ``(N, C)`` before each layer of the decoder, and after the last one.
    """

    decoding: Decoding
    state: Any
    states: list[Tensor]

    @classmethod
    @torch.inference_mode()
    def of(cls, model: ProteinModel, residues: Residues) -> _Encoded:
        decoding = encode(model, [residues])
        state = decoding.start(copies=1)
        rows = torch.arange(len(residues))
        states = [state.h]
        for number, source in enumerate(state.undecoded):
            states.append(_updated(decoding, state, number, states[-1], source, rows))
        return cls(decoding, state, states)

    @torch.inference_mode()
    def log_probs(self, rows: Tensor, types: Tensor) -> Tensor:
        """Return ``(R, 20, 2)``: log p given all other types, and given the backbone, minus their means over types."""
        decoding, state = self.decoding, self.state
        h = state.h[rows]
        for number, (layer, before) in enumerate(zip(decoding.decoder.layers, self.states[:-1], strict=True)):
            source = layer.source(before) + state.table[number][types]
            h = _updated(decoding, state, number, h, source, rows)
        both = torch.stack([decoding.head(h), decoding.head(self.states[-1][rows])], -1)  # (R, types, 2)
        log_p = both.log_softmax(1)[:, :_TYPES]
        return log_p - log_p.mean(1, keepdim=True)


def _updated(decoding: Decoding, state: Any, number: int, h: Tensor, source: Tensor, rows: Tensor) -> Tensor:
    """Return the states ``(R, C)`` of rows after one layer, if the others send ``source`` ``(N, C)``.

    A residue is its own neighbor; what it sends to itself is as before it is decoded, without its type.
    """
    layer = decoding.decoder.layers[number]
    around = state.neighbor[rows]  # (R, K)
    own = (around == rows[:, None])[..., None]
    sent = torch.where(own, state.undecoded[number][rows][:, None], source[around])
    z = sent + state.of_edge[number][rows] + layer.target(h)[:, None]  # (R, K, C)
    return state.mask(layer.update(h, decoding.decoder._total(layer.inner(z), state, rows), state.count[rows]), rows)


_KEPT_BACKBONES: OrderedDict[str, _Encoded] = OrderedDict()


def _encoded(residues: Residues) -> _Encoded:
    """Return the encoding of a backbone; the last ones are kept."""
    content = (residues.backbone, residues.seq_pos, residues.chain_number)
    key = hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in content)).hexdigest()
    if key not in _KEPT_BACKBONES:
        _KEPT_BACKBONES[key] = _Encoded.of(_published(), residues)
        while len(_KEPT_BACKBONES) > _KEPT:
            _KEPT_BACKBONES.popitem(last=False)
    _KEPT_BACKBONES.move_to_end(key)
    return _KEPT_BACKBONES[key]


@cache
def _published() -> ProteinModel:
    return pretrained(_MODEL).eval()
