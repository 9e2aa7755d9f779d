"""Fully sharded data parallelism (FSDP2 of torch) through Lightning: each process keeps a part of all weights.

Not Lightning's FSDPStrategy: it cannot clip gradients by their norm, and needs GPUs (Lightning 2.6.6, 2026-11-22).
"""

from __future__ import annotations

import torch
from lightning.pytorch.strategies import ModelParallelStrategy, Strategy
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard

from protgraph.model.build import ProteinModel

__all__ = ["ShardedStrategy", "is_sharded", "resolve_strategy", "shard_model"]


class ShardedStrategy(ModelParallelStrategy):
    """Strategy that shards the weights, gradients and optimizer state of a model over all processes.

    Checkpoints are complete: they are files of the same form as those of one process.

    References
    ----------
    Zhao et al. 2023, doi:10.14778/3611540.3611569.
    """

    def __init__(self) -> None:
        super().__init__(tensor_parallel_size=1, save_distributed_checkpoint=False)

    def setup_environment(self) -> None:
        """Use all processes for data."""
        self._data_parallel_size = self.num_nodes * self.num_processes
        super().setup_environment()


def resolve_strategy(strategy: str | Strategy) -> str | Strategy:
    """Return the object of ``"fsdp"``; other strategies are returned as they are."""
    return ShardedStrategy() if strategy == "fsdp" else strategy


def shard_model(model: ProteinModel, mesh: DeviceMesh) -> None:
    """Shard each layer, the head and the remaining weights of a model, in place."""
    for part in (*model.layers, model.head):
        if any(True for _ in part.parameters()):
            fully_shard(part, mesh=mesh)
    fully_shard(model, mesh=mesh)


def is_sharded(model: torch.nn.Module) -> bool:
    """Return True for a model of :func:`shard_model`."""
    return isinstance(model, FSDPModule)
