"""Access to cuEquivariance, an optional backend of layers: ``backend="cuequivariance"``.

Its kernels run on CUDA tensors. On other devices tensor products run its plain PyTorch, and triangle layers their own.
"""

from __future__ import annotations

import importlib.util

import torch

from protgraph.errors import MissingExtraError

__all__ = ["require_cuequivariance", "require_cuequivariance_kernels"]


def require_cuequivariance() -> None:
    """Check that cuEquivariance is installed.

    Raises :class:`MissingExtraError` if it is not.
    """
    if not all(map(importlib.util.find_spec, ("cuequivariance", "cuequivariance_torch"))):
        raise MissingExtraError(
            "backend='cuequivariance' needs cuequivariance-torch. pip install 'protgraph-pyg[cuequivariance]'"
        )


def require_cuequivariance_kernels() -> None:
    """Check that the CUDA kernels of cuEquivariance are installed, a package of their own.

    Raises :class:`MissingExtraError` if they are not.
    """
    if not importlib.util.find_spec("cuequivariance_ops_torch"):
        kernels = f"cuequivariance-ops-torch-cu{(torch.version.cuda or '12').split('.')[0]}"
        raise MissingExtraError(f"backend='cuequivariance' needs {kernels} on CUDA. pip install {kernels}")
