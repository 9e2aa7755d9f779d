"""Lightning loggers by name: CSV, TensorBoard, Weights & Biases, MLflow.

Each writes to a folder of its own name in the folder of the run and needs no network and no account. A service that
the user has configured by the environment variables of its library is used instead: ``WANDB_MODE=online``
or ``MLFLOW_TRACKING_URI``.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import CSVLogger, Logger, MLFlowLogger, TensorBoardLogger, WandbLogger
from lightning.pytorch.utilities import rank_zero_only

from protgraph.checkpoint.starting_point import StartingPoint
from protgraph.errors import MissingExtraError, OptionError, ProtgraphError, suggest

__all__ = ["LOGGERS", "PlacePrinter", "logger_by_name", "named_loggers"]

PROJECT = "protgraph"


def logger_by_name(kind: str, folder: str | Path, *, run: str) -> tuple[Logger, str]:
    """Create a logger that writes to a folder."""
    if kind not in LOGGERS:
        raise OptionError(f"Unknown logger: {kind!r}.{suggest(kind, LOGGERS)} Allowed: {', '.join(LOGGERS)}.")
    modules, create = LOGGERS[kind]
    for module in modules:
        if find_spec(module) is None:
            raise MissingExtraError(
                f"Logger {kind!r} needs the package {module!r}, which is not installed. "
                f"Install it with: pip install 'protgraph-pyg[{kind}]'"
            )
    return create(Path(folder) / kind, run)


def named_loggers(
    logger: str | Logger | Sequence[str | Logger] | None, folder: str | Path | None
) -> Logger | list[Logger] | None:
    """Replace the names of loggers by loggers that write to a folder."""
    loggers = [logger] if isinstance(logger, str | Logger) else logger
    if not isinstance(loggers, Sequence) or not any(isinstance(entry, str) for entry in loggers):
        return logger
    if folder is None:
        raise OptionError(f"fit: logger = {logger!r} needs run_dir, the folder that it writes to.")
    run = Path(folder).name
    return [logger_by_name(entry, folder, run=run)[0] if isinstance(entry, str) else entry for entry in loggers]


def _csv(folder: Path, run: str) -> tuple[Logger, str]:
    logger = CSVLogger(folder, name=None)
    return logger, str(Path(logger.log_dir) / "metrics.csv")


def _tensorboard(folder: Path, run: str) -> tuple[Logger, str]:
    logger = TensorBoardLogger(folder, name=None, default_hp_metric=False)
    return logger, f"{logger.log_dir} (show it with: tensorboard --logdir {folder})"


def _wandb(folder: Path, run: str) -> tuple[Logger, str]:
    # wandb itself asks for an account unless WANDB_MODE is set.
    mode = os.environ.get("WANDB_MODE", "offline")
    folder.mkdir(parents=True, exist_ok=True)  # wandb uses another folder if this one is missing
    logger = WandbLogger(name=run, save_dir=folder.parent, project=PROJECT, mode=mode)  # it adds "wandb"
    if mode != "online":
        return logger, f"{folder}, mode {mode!r} (upload it with: wandb sync {folder}/*run-*)"
    _start(logger, "WANDB_MODE", mode, "Log in with 'wandb login', or unset it to log to the folder of the run")
    return logger, f"Weights & Biases, project {PROJECT!r}, and {folder}"


def _mlflow(folder: Path, run: str) -> tuple[Logger, str]:
    if uri := os.environ.get("MLFLOW_TRACKING_URI"):
        logger = MLFlowLogger(PROJECT, run_name=run, tracking_uri=uri)
        _start(logger, "MLFLOW_TRACKING_URI", uri, "Start the server, or unset it to log to the folder of the run")
        return logger, f"MLflow, experiment {PROJECT!r} of {uri}"
    folder.mkdir(parents=True, exist_ok=True)
    uri = f"sqlite:///{(folder / 'mlflow.db').resolve()}"  # MLflow 3 has no file store any more
    artifacts = (folder / "artifacts").resolve().as_uri()
    logger = MLFlowLogger(PROJECT, run_name=run, tracking_uri=uri, artifact_location=artifacts)
    return logger, f"{folder / 'mlflow.db'} (show it with: mlflow ui --backend-store-uri {uri})"


def _start(logger: MLFlowLogger | WandbLogger, variable: str, value: str, fix: str) -> None:
    """Connect to a service now, so that training does not end with its error."""
    try:
        _ = logger.experiment
    except Exception as e:  # the libraries have no common type of errors
        first = (str(e).strip() or type(e).__name__).splitlines()[0]
        raise ProtgraphError(f"Logger cannot be used with {variable}={value}: {first} {fix}.") from e


#: Loggers by name: the modules that each needs, and the function that creates it.
LOGGERS: Mapping[str, tuple[tuple[str, ...], Callable[[Path, str], tuple[Logger, str]]]] = {
    "csv": ((), _csv),
    "tensorboard": (("tensorboard",), _tensorboard),
    "wandb": (("wandb",), _wandb),
    "mlflow": (("mlflow", "sqlalchemy"), _mlflow),  # mlflow-skinny has no database
}


class PlacePrinter(Logger):
    """Lightning logger that writes no values; when a run starts, it prints its starting point and where others write.

    ``show``: prints a line.
    """

    name, version = "places", ""

    def __init__(self, places: Sequence[str], show: Callable[[str], None]) -> None:
        super().__init__()
        self._places, self._show = list(places), show

    @rank_zero_only
    def log_hyperparams(self, params: dict[str, Any] | Namespace, *args: Any, **kwargs: Any) -> None:
        """Print what the run starts from, and where the logs are written."""
        if isinstance(params, dict) and "start" in params:
            for line in StartingPoint(**params["start"]).lines():
                self._show(line)
        for place in self._places:
            self._show(f"logs: {place}")

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Do nothing: metrics are written by the other loggers."""
