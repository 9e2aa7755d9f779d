"""Preparation of graph stores from files: shards, engines, resuming, and an estimate before the run.

:func:`prepare_store` splits the inputs into shards (:func:`split_shards`), applies :class:`ShardWork` to each with
an engine (:func:`run_shards`), and puts the finished shards together. :func:`prepare_records` does the same for records
that are not files.
"""

from protgraph.prepare.estimate import Estimate, estimate_store
from protgraph.prepare.file_records import file_records, file_work
from protgraph.prepare.shard_task import SHARD_RESIDUES, InputRecord, ShardTask, engines, run_shards, split_shards
from protgraph.prepare.shard_work import RecordWork, ShardResult, ShardWork
from protgraph.prepare.store_builder import PreparedStore, prepare_records, prepare_store
from protgraph.worker_process import WorkerDied

__all__ = [
    "SHARD_RESIDUES",
    "Estimate",
    "InputRecord",
    "PreparedStore",
    "RecordWork",
    "ShardResult",
    "ShardTask",
    "ShardWork",
    "WorkerDied",
    "engines",
    "estimate_store",
    "file_records",
    "file_work",
    "prepare_records",
    "prepare_store",
    "run_shards",
    "split_shards",
]
