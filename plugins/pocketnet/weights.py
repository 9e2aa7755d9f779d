"""Find, read and convert the published weights of PocketNet, files of its Python distribution."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import torch
from protgraph_plugins.pocketnet.family import MESSAGES, NETWORKS
from torch import Tensor

from protgraph import Target
from protgraph.errors import CheckpointError, MissingExtraError
from protgraph.model import PublishedWeights, check_published_file, convert_state, read_weights

__all__ = ["CHECKSUMS", "FOLDER_VARIABLE", "convert_pocketnet_state", "find_pocketnet", "load_pocketnet"]

#: Environment variable with the folder of the files, in place of that of the installed distribution.
FOLDER_VARIABLE = "PROTGRAPH_POCKETNET"
_DISTRIBUTION = "pocketnet"
#: Name of each network → SHA-256 of its file in pocketnet 0.3.0.
CHECKSUMS = {
    "v3_fold0": "c29e1b7044a0b71d9d78b1b3db06e02e6a11e594b923b569e1dc3ce8d7232349",
    "v3_fold1": "0ea8f31e3712e4cdd6e62b1f45f4c8b9b2015b046740a16bbae02bf725428257",
    "v3_fold2": "16b51a74cba018a16e07c253e87253e1d4c447a1d127538b34baf099a4ef4d6a",
    "v3_fold3": "97617f54abaf62eac05edbaf41e9b8e6ccf8c0b9fdd893a9a42cc6a1c5d0063c",
    "v3_fold4": "e354570a9d97326ecb53dda71eed4c7b407402f8bbafcec6737d3fc121296fc7",
}
_LABEL = "ligand_binding"
_LAYERS = 1 + MESSAGES + 1  # of one network
_UNUSED = ("atom_head.weight", "atom_head.bias", "att.2.bias", "rbf.mu", "rax.mu", "rrad.mu")


def find_pocketnet() -> Path:
    """Return the folder of the files of PocketNet, which has ``weights`` and ``calibration.json``.

    Raises
    ------
    MissingExtraError
        The distribution is not installed, and the environment variable names no such folder.
    """
    stated = os.environ.get(FOLDER_VARIABLE, "")
    if stated:
        folder = Path(stated)
    else:
        try:
            folder = Path(str(metadata.distribution(_DISTRIBUTION).locate_file(_DISTRIBUTION)))
        except metadata.PackageNotFoundError as error:
            raise MissingExtraError(
                "weights of pocketnet not found: the distribution pocketnet is not installed.\n"
                "Run: pip install --no-deps pocketnet==0.3.0, or unpack its wheel (MIT, 19 MB) and set "
                f"{FOLDER_VARIABLE} to the folder 'pocketnet' in it."
            ) from error
    if not (folder / "weights").is_dir():
        raise MissingExtraError(
            f"weights of pocketnet not found: {folder / 'weights'}.\n"
            f"Run: pip install --no-deps pocketnet==0.3.0, or set {FOLDER_VARIABLE} to folder 'pocketnet' of its wheel."
        )
    return folder


def load_pocketnet(name: str, file: str | Path | None = None) -> PublishedWeights:
    """Load the weights of the five networks, for one probability per residue.

    Parameters
    ----------
    name : str
        The model.
    file : str or Path, optional
        Not supported: the model is the mean of five networks.

    Raises
    ------
    MissingExtraError
        The weights are not on this machine.
    CheckpointError
        A file is damaged or from another version, or ``file`` is given.
    """
    if file is not None:
        raise CheckpointError(
            f"weights of {name}: file={str(file)!r}, but it is the mean of {NETWORKS} networks. Set {FOLDER_VARIABLE} "
            "to a folder with weights/v3_fold0.pt and the others."
        )
    folder = find_pocketnet() / "weights"
    state: dict[str, Tensor] = {}
    for number, network in enumerate(CHECKSUMS):
        path = _checked(folder / f"{network}.pt", CHECKSUMS[network])
        theirs = read_weights(path, "PocketNet")
        converted = convert_state(theirs, convert_pocketnet_state, path=path, program="PocketNet", unused=_UNUSED)
        for parameter, value in converted.items():
            layer, _, rest = parameter.partition(".")
            state[f"layers.{int(layer) + _LAYERS * number}.{rest}"] = value
    state |= {"head.mlp.0.weight": torch.ones(1, 1), "head.mlp.0.bias": torch.zeros(1)}
    return PublishedWeights(Target(_LABEL, "node", "multilabel", 1, (_LABEL,)), state, task=_LABEL)


def _checked(path: Path, checksum: str) -> Path:
    """Return the path of a file after comparing its checksum."""
    if not path.is_file():
        raise MissingExtraError(
            f"weights of pocketnet not found: {path}. Version 0.3.0 has this file.\n"
            "Run: pip install --no-deps pocketnet==0.3.0"
        )
    advice = "Required: version 0.3.0. Run: pip install --force-reinstall --no-deps pocketnet==0.3.0"
    check_published_file(path, checksum, model="pocketnet", advice=advice)
    return path


def convert_pocketnet_state(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert the parameters of one network; maps of joined inputs are split.

    Layers are numbered from 0: embedding, six of messages, attention.
    """
    converted = {
        "0.kind.weight": state["emb.weight"],
        "0.count.weight": state["bur.weight"],
        "0.count.bias": state["bur.bias"],
    }
    dim = state["emb.weight"].size(1)
    for number in range(MESSAGES):
        theirs, ours = f"layers.{number}", 1 + number
        # columns: target, source, edge; rows: message, gate
        joined = torch.cat([state[f"{theirs}.msg.0.weight"], state[f"{theirs}.gate.weight"]])
        target, source, edge = joined.split([dim, dim, joined.size(1) - 2 * dim], 1)
        converted |= {
            f"{ours}.target.weight": target,
            f"{ours}.target.bias": torch.cat([state[f"{theirs}.msg.0.bias"], state[f"{theirs}.gate.bias"]]),
            f"{ours}.source.weight": source,
            f"{ours}.edge.weight": edge,
        }
        names = {"msg.2": "message", "upd.0": "update.0", "upd.2": "update.2", "n1": "norm"}
        converted |= _renamed(state, {f"{theirs}.{a}": f"{ours}.{b}" for a, b in names.items()})
    last = 1 + MESSAGES
    attend, value = state["att.0.weight"], state["val.weight"]
    width = state["proj.weight"].size(0)
    converted |= {
        f"{last}.attend_geometry.weight": attend[:, :-width],
        f"{last}.attend_geometry.bias": state["att.0.bias"],
        f"{last}.attend_source.weight": attend[:, -width:],
        f"{last}.attend.weight": state["att.2.weight"],
        f"{last}.value_source.weight": value[:, :width],
        f"{last}.value_geometry.weight": value[:, width:],
        f"{last}.value_geometry.bias": state["val.bias"],
    }
    names = {"proj": "project", "pfn.0": "shape.0", "pfn.2": "shape.2"}
    names |= {f"out.{number}": f"output.{number}" for number in (0, 3, 5)}
    converted |= _renamed(state, {a: f"{last}.{b}" for a, b in names.items()})
    return {name: tensor.contiguous() for name, tensor in converted.items()}


def _renamed(state: Mapping[str, Tensor], names: Mapping[str, str]) -> dict[str, Tensor]:
    """Return weights and biases of maps under other names."""
    renamed = {}
    for theirs, ours in names.items():
        for kind in ("weight", "bias"):
            renamed[f"{ours}.{kind}"] = state[f"{theirs}.{kind}"]
    return renamed
