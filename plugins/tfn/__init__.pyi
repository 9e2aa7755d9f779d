# Written by tools/stubs.py.
from protgraph_plugins.tfn.cuequivariance_backend import (
    require_cuequivariance as require_cuequivariance,
    require_cuequivariance_kernels as require_cuequivariance_kernels,
)
from protgraph_plugins.tfn.family import FAMILY as FAMILY
from protgraph_plugins.tfn.layer import TFN as TFN
from protgraph_plugins.tfn.tensor_product import (
    ChannelwiseProduct as ChannelwiseProduct,
    TensorProductBackend as TensorProductBackend,
)
