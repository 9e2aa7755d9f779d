"""Model family of causal transformers that predict the next residue. No coordinates."""

from __future__ import annotations

from protgraph import ComponentSpec, Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"gpt": "FAMILY"}}


def _network(
    name: str, doc: str, *, dim: int, heads: int, depth: int, learned: bool = False, dropout: float = 0.1
) -> ModelSpec:
    places = {"seq_pos": "seq_pos", "chain": "chain"}
    block = component("pre_norm_block", heads=heads, causal=True, dropout=dropout, reads={} if learned else places)
    layers: list[ComponentSpec | str] = [component("embed", reads=["previous"], dim=dim)]
    if learned:
        layers.append(component("position", kind="learned", max_len=2048, reads={"seq_pos": "seq_pos"}))
    return ModelSpec(name, features=["previous_residue"], layers=[*layers, *depth * [block], "layer_norm"], doc=doc)


_ROTARY = "Causal pre-norm transformer with rotary positions; Radford et al. 2019, Su et al. 2021, arXiv:2104.09864."
_RADFORD = "GPT-2 small: learned positions, causal, pre-norm; Radford et al. 2019."

FAMILY = Family(
    {
        "small": _network("gpt", _ROTARY, dim=96, heads=6, depth=4),
        "radford2019": _network("gpt.radford2019", _RADFORD, dim=768, heads=12, depth=12, learned=True),
    },
    doc="Causal language models of sequences.",
)
