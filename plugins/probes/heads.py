"""Heads on frozen vectors: a linear map and a small MLP, with options chosen on validation."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

import protgraph
from protgraph.data.datasets import Target
from protgraph.errors import DatasetError
from protgraph.file_io import atomic_write
from protgraph.task import Metric, SplitPredictions, binary_cross_entropy, cross_entropy, squared_error

__all__ = [
    "HEADS",
    "HeadKind",
    "ProbeRows",
    "constant_predictions",
    "fit_head",
    "fit_linear",
    "fitted_head",
    "predict_with",
]

HeadKind = Literal["linear", "mlp"]
HEADS: tuple[HeadKind, ...] = ("linear", "mlp")

#: Penalties of the linear head, strongest first; each fit starts from the one before.
PENALTIES = (1.0, 0.1, 0.01, 1e-3, 1e-4)
_STEPS = 200  # of L-BFGS for one penalty

# The MLP and its training.
_HIDDEN = 64
_DROPOUT = 0.2
_LEARNING_RATE = 3e-3
_WEIGHT_DECAY = 1e-2
_EPOCHS = 30
_PATIENCE = 5  # epochs without improvement
_LARGEST_BATCH = 512  # rows
_LEAST_BATCHES = 20  # of an epoch


@dataclass(frozen=True, eq=False)
class ProbeRows:
    """Vectors and labels of R residues or proteins with known labels.

    Parameters
    ----------
    vectors : ndarray
        ``(R, D)`` float32.
    y : Tensor
        ``(R,)`` int64 classes, or ``(R, 1)`` float32.
    protein, chain : Tensor
        ``(R,)`` int64, number of the protein, and of the chain over all proteins.
    names : tuple of str
        Names of the proteins.
    clusters : tuple of int
        Cluster of each protein.
    """

    vectors: np.ndarray
    y: Tensor
    protein: Tensor
    chain: Tensor
    names: tuple[str, ...]
    clusters: tuple[int, ...]

    def first(self, proteins: int) -> ProbeRows:
        """Return the rows of the first proteins."""
        keep = self.protein < proteins
        return ProbeRows(
            self.vectors[keep.numpy()],
            self.y[keep],
            self.protein[keep],
            self.chain[keep],
            self.names[:proteins],
            self.clusters[:proteins],
        )

    def predictions(self, logits: np.ndarray) -> SplitPredictions:
        """Return logits ``(R, C)`` with the labels, as metrics read them."""
        values = torch.from_numpy(np.ascontiguousarray(logits, np.float32))
        return SplitPredictions(values, self.y, chain=self.chain, protein=self.protein)


@dataclass(frozen=True, eq=False)
class _Scaling:
    """Mean and standard deviation of the training vectors, ``(D,)`` each."""

    mean: np.ndarray
    sd: np.ndarray

    @classmethod
    def of(cls, vectors: np.ndarray) -> _Scaling:
        sd = vectors.std(0, dtype=np.float64)
        return cls(vectors.mean(0, dtype=np.float64), np.where(sd > 1e-6, sd, 1.0))

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        return (vectors - self.mean) / self.sd


def fit_head(
    kind: HeadKind, target: Target, metric: Metric, train: ProbeRows, val: ProbeRows, test: ProbeRows, *, seed: int = 0
) -> SplitPredictions:
    """Fit a head on ``train``, choose its options on ``val``, and predict ``test``.

    The linear head is a logistic regression, softmax for classes, or a ridge regression, whose penalty is chosen; the
    MLP has one hidden layer of 64 units, and the best of up to 30 epochs is chosen.

    Parameters
    ----------
    target : Target
        Kind and number of the labels.
    metric : Metric
        Metric that chooses.
    seed : int
        Initial weights, dropout and order of the rows of the MLP.

    Raises
    ------
    DatasetError
        Training labels are all equal, or the metric is undefined on validation.
    """
    _check_labels(train)
    scaling = _Scaling.of(train.vectors)
    x, x_val, x_test = (scaling(rows.vectors) for rows in (train, val, test))
    y = _as_columns(train.y, target)
    if kind == "linear":
        candidates = fit_linear(x, y, target)
        scores = [_score(metric, val, predict_with(weights, x_val)) for weights in candidates]
        return test.predictions(predict_with(candidates[_best(scores, metric)], x_test))
    return test.predictions(_fit_mlp(x, train.y, x_val, val, x_test, target, metric, seed))


def fitted_head(
    folder: Path,
    kind: HeadKind,
    target: Target,
    metric: Metric,
    train: ProbeRows,
    val: ProbeRows,
    test: ProbeRows,
    *,
    seed: int = 0,
) -> SplitPredictions:
    """Return :func:`fit_head`, from a file of ``folder`` if it was computed before for the same rows and options."""
    content = hashlib.sha256(repr((kind, target, metric.name, seed, protgraph.__version__)).encode())
    for rows in (train, val, test):
        content.update(np.ascontiguousarray(rows.vectors).tobytes())
        for values in (rows.y, rows.protein, rows.chain):
            content.update(values.numpy().tobytes())
    path = folder / f"{content.hexdigest()[:32]}.npy"
    if path.is_file():
        return test.predictions(np.load(path, allow_pickle=False))
    predictions = fit_head(kind, target, metric, train, val, test, seed=seed)
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.save(file, predictions.logits.numpy())
    return predictions


def constant_predictions(target: Target, train: ProbeRows, rows: ProbeRows) -> SplitPredictions:
    """Predict the frequencies of the classes, or the mean, of the training labels for all rows."""
    mean = _as_columns(train.y, target).mean(0)
    return rows.predictions(np.broadcast_to(mean, (len(rows.y), target.size)))


# --- linear --------------------------------------------------------------------------------------------------------


def fit_linear(
    x: np.ndarray, y: np.ndarray, target: Target, penalties: Sequence[float] = PENALTIES
) -> list[np.ndarray]:
    """Minimize the mean loss plus ``λ/2 ‖W‖²`` for each penalty λ; the bias is not penalized.

    The loss is the cross entropy, softmax for classes and of each label otherwise, or half the squared error.

    Parameters
    ----------
    x : ndarray
        ``(R, D)`` float64, standardized.
    y : ndarray
        ``(R, C)`` float64: classes as 0 and 1 in C columns, labels, or values.

    Returns
    -------
    list of ndarray
        ``(D + 1, C)`` for each penalty, the bias last.
    """
    if target.kind == "regression":
        return [_ridge(x, y, penalty) for penalty in penalties]
    from scipy.optimize import minimize

    weights = np.zeros((x.shape[1] + 1, y.shape[1]))
    fitted = []
    for penalty in penalties:
        result = minimize(
            _penalized_loss,
            weights.ravel(),
            args=(x, y, target, penalty),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": _STEPS},
        )
        weights = result.x.reshape(weights.shape)
        fitted.append(weights)
    return fitted


def predict_with(weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return ``x W + b`` ``(R, C)`` for ``weights (D + 1, C)``."""
    return x @ weights[:-1] + weights[-1]


def _penalized_loss(
    flat: np.ndarray, x: np.ndarray, y: np.ndarray, target: Target, penalty: float
) -> tuple[float, np.ndarray]:
    """Return the mean cross entropy plus the penalty, and its gradient, for flat weights ``((D + 1) C,)``."""
    weights = flat.reshape(-1, y.shape[1])
    value, slope = _cross_entropy(predict_with(weights, x), y, target)
    gradient = np.concatenate([x.T @ slope + penalty * weights[:-1], slope.sum(0)[None]])
    return value + 0.5 * penalty * float((weights[:-1] ** 2).sum()), gradient.ravel()


def _cross_entropy(logits: np.ndarray, y: np.ndarray, target: Target) -> tuple[float, np.ndarray]:
    """Return the mean cross entropy, and its gradient by the logits ``(R, C)``."""
    if target.kind == "classification":
        top = logits.max(1, keepdims=True)
        log_sum = top + np.log(np.exp(logits - top).sum(1, keepdims=True))
        value = (log_sum[:, 0] - (logits * y).sum(1)).mean()
        probability = np.exp(logits - log_sum)
    else:
        value = (np.logaddexp(0, logits) - logits * y).sum(1).mean()
        probability = 0.5 * (1 + np.tanh(0.5 * logits))
    return float(value), (probability - y) / len(y)


def _ridge(x: np.ndarray, y: np.ndarray, penalty: float) -> np.ndarray:
    """Return the closed form: ``(XᵀX / R + λ) W = Xᵀ(y - ȳ) / R`` of centered X."""
    center, mean = x.mean(0), y.mean(0)
    centered = x - center
    gram = centered.T @ centered / len(x) + penalty * np.eye(x.shape[1])
    weights = np.linalg.solve(gram, centered.T @ (y - mean) / len(x))
    return np.concatenate([weights, (mean - center @ weights)[None]])


# --- MLP -----------------------------------------------------------------------------------------------------------


def _fit_mlp(
    x: np.ndarray,
    y: Tensor,
    x_val: np.ndarray,
    val: ProbeRows,
    x_test: np.ndarray,
    target: Target,
    metric: Metric,
    seed: int,
) -> np.ndarray:
    """Train an MLP with AdamW, and return the logits ``(R, C)`` of ``x_test`` of the best epoch on validation."""
    losses = {"classification": cross_entropy, "multilabel": binary_cross_entropy, "regression": squared_error}
    loss_function = losses[target.kind]
    # the head learns values in standard deviations from the mean
    mean, sd = torch.tensor(0.0), torch.tensor(1.0)
    if target.kind == "regression":
        mean, sd = y.mean(0), y.std(0)
    inputs, val_inputs, test_inputs = (torch.from_numpy(a.astype(np.float32)) for a in (x, x_val, x_test))
    batch = max(1, min(_LARGEST_BATCH, len(inputs) // _LEAST_BATCHES))

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = nn.Sequential(
            nn.Linear(inputs.shape[1], _HIDDEN), nn.ReLU(), nn.Dropout(_DROPOUT), nn.Linear(_HIDDEN, target.size)
        )
        optimizer = torch.optim.AdamW(network.parameters(), lr=_LEARNING_RATE, weight_decay=_WEIGHT_DECAY)
        scores: list[float] = []
        states = []
        for _ in range(_EPOCHS):
            network.train()
            for rows in torch.randperm(len(inputs)).split(batch):
                optimizer.zero_grad()
                loss = loss_function(network(inputs[rows]), (y[rows] - mean) / sd if mean.dim() else y[rows])
                loss.backward()
                optimizer.step()
            network.eval()
            with torch.no_grad():
                scores.append(_score(metric, val, (network(val_inputs) * sd + mean).numpy()))
            states.append(copy.deepcopy(network.state_dict()))
            if len(scores) - 1 - _best(scores, metric) >= _PATIENCE:
                break
        network.load_state_dict(states[_best(scores, metric)])
        network.eval()
        with torch.no_grad():
            return (network(test_inputs) * sd + mean).numpy()


# --- labels and choices ----------------------------------------------------------------------------------------------


def _as_columns(y: Tensor, target: Target) -> np.ndarray:
    """Return labels as ``(R, C)`` float64; classes as 0 and 1 in C columns."""
    if target.kind == "classification":
        return np.eye(target.size)[y.numpy()]
    return y.double().numpy()


def _check_labels(train: ProbeRows) -> None:
    if len(train.y) == 0 or bool((train.y == train.y[:1]).all()):
        raise DatasetError(
            f"labels of {len(train.y)} training rows of {len(train.names)} proteins are all equal. "
            "Take more proteins: --limit."
        )


def _score(metric: Metric, rows: ProbeRows, logits: np.ndarray) -> float:
    return metric(rows.predictions(logits))


def _best(scores: Sequence[float], metric: Metric) -> int:
    """Return the number of the first best score; undefined ones are worst."""
    values = np.array(scores, float)
    if np.isnan(values).all():
        raise DatasetError(
            f"{metric.name} is undefined on the validation proteins, e.g. because a class is missing. "
            "Take more proteins: --limit."
        )
    return int(np.nanargmax(values if metric.mode == "max" else -values))
