"""Check that predictions do not depend on how chains, or proteins, are placed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.spatial.transform import Rotation

from protgraph.checkpoint import Checkpoint, load_checkpoint
from protgraph.data import Dataset, Example, GraphStore
from protgraph.errors import DatasetError, OptionError
from protgraph.featurize import Failure, ProteinRequest
from protgraph.inference import predict
from protgraph.labels import load_proteins
from protgraph.structure import Residues
from protgraph.structure.io import ReadOptions
from protgraph.wording import count_noun

__all__ = ["PoseCheck", "PoseLeak", "check_pose", "move_rows"]

_TOLERANCE = 1e-3  # of a probability, or of the largest value of a regression; float32 gives about 1e-5
_GAP = 60.0  # Å between the moved residues and the others; beyond the cutoff of any edge
_SHOWN = 5
_UNITS = {"chain": "has several chains with coordinates", "protein": "has coordinates"}  # unit → what it requires


@dataclass(frozen=True)
class PoseLeak:
    """Predictions that changed when a part of a protein was moved.

    Parameters
    ----------
    protein : str
    chain : str
        The moved chain; "" for the whole protein.
    change : float
        Largest change of a predicted value.
    rows : int
        Rows of the prediction, e.g. residues, that changed.
    """

    protein: str
    chain: str
    change: float
    rows: int


@dataclass(frozen=True)
class PoseCheck:
    """Result of :func:`check_pose`; ``str`` returns the lines of ``protgraph data check``.

    Parameters
    ----------
    unit : {"chain", "protein"}
    proteins, moves : int
        Proteins that were checked, and movements of them.
    change : float
        Largest change of a predicted value.
    leaks : tuple of PoseLeak
        Movements that changed predictions, the largest change first.
    failures : tuple of Failure
        Proteins without predictions.
    """

    unit: str
    proteins: int
    moves: int
    change: float
    leaks: tuple[PoseLeak, ...]
    failures: tuple[Failure, ...] = ()

    @property
    def has_leaks(self) -> bool:
        """True if any movement changed a prediction."""
        return bool(self.leaks)

    def __str__(self) -> str:
        moved = "a chain" if self.unit == "chain" else "the whole protein"
        lines = [
            f"pose: {count_noun(self.moves, 'movement')} of {moved} in {count_noun(self.proteins, 'protein')}; "
            f"largest change of a prediction {self.change:.2g} (at most {_TOLERANCE:g} by rounding)"
        ]
        for leak in self.leaks[:_SHOWN]:
            name = f"{leak.protein}:{leak.chain}" if leak.chain else leak.protein
            lines.append(f"  {name} moved: {count_noun(leak.rows, 'row')} changed, by up to {leak.change:.2g}")
        if len(self.leaks) > _SHOWN:
            lines.append(f"  and {len(self.leaks) - _SHOWN} more")
        if self.failures:
            number = count_noun(len(self.failures), "protein")
            lines.append(f"{number} without predictions; the first: {self.failures[0]}")
        lines.append(f"predictions depend on the pose of {moved}" if self.leaks else "no pose leak found")
        return "\n".join(lines)


def check_pose(
    checkpoint: str | Path | Checkpoint,
    dataset: str | Path | Dataset | GraphStore | Sequence[str | os.PathLike[str]],
    *,
    unit: Literal["chain", "protein"] = "chain",
    labels: Any = None,
    task: str | None = None,
    proteins: int = 20,
    device: str = "auto",
    seed: int = 0,
    read: ReadOptions | None = None,
    cache: str | Path | None = None,
    report: Callable[[int, int], None] | None = None,
) -> PoseCheck:
    """Move chains rigidly and compare the predictions with those of the original.

    A model for partners whose complex is unknown must not depend on their pose: in a bound complex, the placement of
    the chains shows the interface. Each chain but the first is rotated at random and moved 60 Å away from all others,
    one at a time. With ``unit="protein"`` all chains are moved together: only a dependence on the coordinate frame
    changes the predictions, which matters where files of unbound partners are superposed on their complex.

    Parameters
    ----------
    checkpoint : str, Path or Checkpoint
        As of :func:`protgraph.inference.predict`. A model trained on single chains is applied to each chain alone.
    dataset, labels, task, seed, read, cache
        As of :func:`protgraph.labels.load_dataset`; a task is not required.
    unit : {"chain", "protein"}
        What is moved.
    proteins : int
        Most proteins that are checked, evenly spaced in the dataset; of several chains for ``unit="chain"``.
    device : str
    report : callable, optional
        Called with the numbers of finished and of all proteins.

    Raises
    ------
    OptionError
        The unit is not known, or the model predicts vectors, which rotate with the protein.
    DatasetError
        No protein can be moved, e.g. none has several chains, or none has predictions.
    """
    if unit not in _UNITS:
        raise OptionError(f"unit: {unit!r} is not known. Allowed: 'chain', 'protein'.")
    model = checkpoint if isinstance(checkpoint, Checkpoint) else load_checkpoint(checkpoint)
    target = model.model.target
    if target.kind in ("vectors", "coordinates"):
        raise OptionError(f"checkpoint: it predicts {target.kind}, which rotate with the protein. Allowed: scores.")
    data = load_proteins(dataset, labels=labels, task=task, seed=seed, read=read, cache=cache)
    chosen = list(_movable(data, unit, proteins))
    if not chosen:
        raise DatasetError(f"dataset {data.name!r}: no protein {_UNITS[unit]}; nothing can be moved.")
    movements: list[PoseLeak] = []
    failures: list[Failure] = []
    for number, (example, residues) in enumerate(chosen):
        rng = np.random.default_rng([seed, number])
        for movement in _compare_moved(model, example, residues, _moved(residues, unit, rng), device):
            if isinstance(movement, Failure):
                failures.append(movement)
            else:
                movements.append(movement)
        if report is not None:
            report(number + 1, len(chosen))
    if not movements:
        raise DatasetError(f"dataset {data.name!r}: no protein has predictions. The first failure: {failures[0]}")
    movements.sort(key=lambda movement: -movement.change)
    leaks = tuple(movement for movement in movements if movement.rows)
    return PoseCheck(unit, len(chosen), len(movements), movements[0].change, leaks, tuple(failures))


def _movable(data: Dataset, unit: str, most: int) -> Iterator[tuple[Example, Residues]]:
    """Yield at most so many examples that can be moved, evenly spaced; the next one where one cannot."""
    examples = data.all_examples()
    spaced = {len(examples) * k // most for k in range(most)}
    number = 0
    for i in sorted(range(len(examples)), key=lambda i: (i not in spaced, i)):
        residues = data.read(examples[i])
        if not residues.has_coordinates or (unit == "chain" and len(residues.chain_names) < 2):
            continue
        yield examples[i], residues
        number += 1
        if number == most:
            return


def _moved(residues: Residues, unit: str, rng: np.random.Generator) -> Iterator[tuple[str, Residues]]:
    """Yield the moved chain, or "", with the protein after the movement."""
    if unit == "protein":
        yield "", move_rows(residues, np.ones(len(residues), bool), rng)
        return
    for chain in residues.chain_names[1:]:
        yield chain, move_rows(residues, residues.chain == chain, rng)


def move_rows(residues: Residues, rows: np.ndarray, rng: np.random.Generator) -> Residues:
    """Rotate residues about their center and move them at least 60 Å away from where any residue was.

    Parameters
    ----------
    residues : Residues
        Its ligands are removed: which part they belong to is not known.
    rows : ndarray
        ``(N,)`` bool, the residues to move.
    rng : Generator
    """
    rotation = Rotation.from_quat(rng.normal(size=4)).as_matrix()  # (3, 3)
    direction = rng.normal(size=3)
    everything = residues.pos[np.isfinite(residues.pos).all(1)].astype(np.float64)
    center = np.nanmean(residues.pos[rows].astype(np.float64), axis=0)
    extent = 2 * np.linalg.norm(everything - everything.mean(0), axis=1).max()
    step = (extent + _GAP) * direction / np.linalg.norm(direction)

    def move(positions: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        new = (positions.astype(np.float64) - center) @ rotation.T + center + step
        return np.where(chosen.reshape(-1, *[1] * (positions.ndim - 1)), new, positions).astype(positions.dtype)

    return replace(
        residues,
        pos=move(residues.pos, rows),
        backbone=move(residues.backbone, rows),
        atom_pos=move(residues.atom_pos, rows[residues.atom_residue]),
        ligands=None,
    )


def _compare_moved(
    model: Checkpoint,
    example: Example,
    residues: Residues,
    movements: Iterator[tuple[str, Residues]],
    device: str,
) -> Iterator[PoseLeak | Failure]:
    """Yield the change of the predictions by each movement, and a failure for each input without predictions."""
    original = _scores(model, example, residues, device)
    if isinstance(original, Failure):
        yield original
    for chain, moved in movements:
        values = _scores(model, example, moved, device)
        if isinstance(values, Failure):
            yield values
        elif not isinstance(original, Failure):
            yield PoseLeak(example.id, chain, *_change(original, values))


def _scores(model: Checkpoint, example: Example, residues: Residues, device: str) -> np.ndarray | Failure:
    """Return ``(R, C)`` predicted values, or the failure."""
    residues = replace(residues, ligands=None)
    request = ProteinRequest(str(example.path), protein=example.id, read=lambda: residues)
    table = predict(model, [request], device=device, calibrated=False)
    if table.failures or not table.rows:
        empty = Failure.of(example.path, example.id, DatasetError("no predictions"))
        return table.failures[0] if table.failures else empty
    columns = [column for column, value in enumerate(table.rows[0]) if isinstance(value, float)]
    values = []
    for row in table.rows:
        values.append([row[column] for column in columns])
    return np.array(values, np.float64)


def _change(first: np.ndarray, second: np.ndarray) -> tuple[float, int]:
    """Return the largest change, and the number of rows that changed."""
    if first.shape != second.shape:  # e.g. other edges
        return float("inf"), max(len(first), len(second))
    change = np.abs(first - second).max(1)
    limit = _TOLERANCE * max(1.0, float(np.abs(first).max()))
    return float(change.max()), int((change > limit).sum())
