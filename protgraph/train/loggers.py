"""Lightning loggers by name: CSV, TensorBoard, Weights & Biases, MLflow, Trackio."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import CSVLogger, Logger, MLFlowLogger, TensorBoardLogger, WandbLogger
from lightning.pytorch.utilities import rank_zero_only

from protgraph.errors import MissingExtraError, OptionError

__all__ = ["LOGGERS", "TrackioLogger", "logger_by_name"]

PROJECT = "protgraph"
#: Logger names, and the module that each needs.
LOGGERS = {"csv": None, "tensorboard": "tensorboard", "wandb": "wandb", "mlflow": "mlflow", "trackio": "trackio"}


def logger_by_name(kind: str, folder: str | Path, *, run: str) -> tuple[Logger, str]:
    """Create a logger that writes to a folder.

    Parameters
    ----------
    kind : str
        One of :data:`LOGGERS`.
    folder : str or Path
        Folder of the run.
    run : str
        Name of the run.

    Returns
    -------
    Logger
    str
        Where the values are, for a message.

    Raises
    ------
    OptionError
        There is no such logger.
    MissingExtraError
        Its package is not installed.
    """
    if kind not in LOGGERS:
        raise OptionError(f"Unknown logger: {kind!r}. Allowed: {', '.join(LOGGERS)}.")
    module, folder = LOGGERS[kind], Path(folder)
    if module is not None and find_spec(module) is None:
        raise MissingExtraError(
            f"Logger {kind!r} needs the package {module!r}, which is not installed. "
            f"Install it with: pip install 'protgraph-pyg[{kind}]'"
        )
    if kind == "csv":
        logger = CSVLogger(folder, name="logs")
        return logger, str(Path(logger.log_dir) / "metrics.csv")
    if kind == "tensorboard":
        logger = TensorBoardLogger(folder, name="logs")
        return logger, f"{logger.log_dir} (show it with: tensorboard --logdir {folder})"
    if kind == "wandb":
        folder.mkdir(parents=True, exist_ok=True)
        return WandbLogger(
            name=run, save_dir=folder, project=PROJECT
        ), f"Weights & Biases, project {PROJECT!r}, and {folder / 'wandb'}"
    if kind == "mlflow":
        uri = f"file:{folder.resolve() / 'mlruns'}"
        return MLFlowLogger(
            PROJECT, run_name=run, tracking_uri=uri
        ), f"{folder / 'mlruns'} (show it with: mlflow ui --backend-store-uri {uri})"
    return TrackioLogger(run), f"Trackio, project {PROJECT!r} (show it with: trackio show)"


class TrackioLogger(Logger):
    """Lightning logger for Trackio, which has none in Lightning 2.6.

    Parameters
    ----------
    run : str
        Name of the run.
    project : str
    """

    def __init__(self, run: str, *, project: str = PROJECT) -> None:
        super().__init__()
        self._run, self._project = run, project
        self._started = False

    @property
    def name(self) -> str:
        return self._project

    @property
    def version(self) -> str:
        return self._run

    @rank_zero_only
    def log_hyperparams(self, params: dict[str, Any] | Namespace, *args: Any, **kwargs: Any) -> None:
        self._start(vars(params) if isinstance(params, Namespace) else params)

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        self._start({})
        self._trackio.log(dict(metrics), step=step)

    @rank_zero_only
    def finalize(self, status: str) -> None:
        if self._started:
            self._trackio.finish()
            self._started = False

    def _start(self, config: Mapping[str, Any]) -> None:
        if not self._started:
            import trackio

            self._trackio = trackio
            trackio.init(project=self._project, name=self._run, config=dict(config))
            self._started = True
