"""Tensor field networks on proteins, and the channelwise tensor products that other equivariant families use."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module that exports it.
_HOME = {
    "ChannelwiseProduct": "protgraph_plugins.tfn.tensor_product",
    "FAMILY": "protgraph_plugins.tfn.family",
    "TFN": "protgraph_plugins.tfn.layer",
    "TensorProductBackend": "protgraph_plugins.tfn.tensor_product",
    "require_cuequivariance": "protgraph_plugins.tfn.cuequivariance_backend",
    "require_cuequivariance_kernels": "protgraph_plugins.tfn.cuequivariance_backend",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
