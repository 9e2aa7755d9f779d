"""Find, read and convert the published weights of ScanNet, Keras files of its repository."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import torch
from protgraph_plugins.scannet.family import FILES
from torch import Tensor

from protgraph import Target
from protgraph.errors import CheckpointError, MissingExtraError
from protgraph.model import PublishedWeights, check_published_file, convert_state
from protgraph.structure import ALPHABET

__all__ = ["CHECKSUMS", "FOLDER_VARIABLE", "convert_scannet_state", "load_scannet", "read_keras_file"]

#: Environment variable with the folder ``models`` of a copy of the repository.
FOLDER_VARIABLE = "PROTGRAPH_SCANNET"
#: Name of each network → SHA-256 of its file in the repository, commit 7685549.
CHECKSUMS = {
    "ScanNet_PPI_noMSA": "074cb1746f368697e29f9416c34cf408f0134ef77e41461befc9dbd626a90277",
    "ScanNet_PAI_noMSA_0": "db3c708d8de50b873145b766a2786ca6980e05e0d9c54743818d26cf9359f624",
    "ScanNet_PAI_noMSA_1": "37fc2c97ff6682266df53154b0d23470d6cfcec955f1504218775ab886647384",
    "ScanNet_PAI_noMSA_2": "748df27452b2f95dfeece2454ec38601f506bab36ad266e076ee0533b7841525",
    "ScanNet_PAI_noMSA_3": "8c5d92185aa930d250e827bb52e45f5b0bae2b537c8c3c2738fc92565417ad04",
    "ScanNet_PAI_noMSA_4": "a4d94f465b526446a906a4cfcc8cc4d38a7d96f1e9da19704bd53f96643b339a",
    "ScanNet_PIDPI_noMSA_0": "a015dda1debfe73874400887c86acdca9e116581ee58ad66892a7e5bf7adfae6",
    "ScanNet_PIDPI_noMSA_1": "4fbdae720c088bb28549859fbdb31412219924e61418e39b3c72a4953ee4b90e",
    "ScanNet_PIDPI_noMSA_2": "a0b6a94bce6cc3f2a81aea73e91a33fe149119d64860239f3161f9221479e1c9",
    "ScanNet_PIDPI_noMSA_3": "f223c767d15f0035c7b1101c689af78e2580279668fa58326314d721dc3a94d9",
    "ScanNet_PIDPI_noMSA_4": "6f0c5da19c0ebd1925e6229240cfc6bffc06115625dcd768d50c02682b6463d5",
}
_LABELS = {"ppi": "protein_interface", "epitope": "epitope", "disordered": "disordered_partner"}
_LAYERS = 8  # of one network
_AXES = [2, 0, 1]  # the frames of the program are (x, y, z) = (e₂, e₃, e₁)


def load_scannet(name: str, file: str | Path | None = None) -> PublishedWeights:
    """Load the weights of a variant, e.g. ``"scannet.ppi"``, for one probability per residue.

    Parameters
    ----------
    name : str
        The model.
    file : str or Path, optional
        A network of one file in the same format; its checksum is not compared.

    Raises
    ------
    MissingExtraError
        The weights are not on this machine, or h5py is not installed.
    CheckpointError
        A file is damaged or from another program, or ``file`` is given for a mean of networks.
    """
    variant = name.rpartition(".")[2]
    networks = FILES[variant]
    if file is None:
        paths = [_published_file(name, network) for network in networks]
    elif len(networks) == 1:
        paths = [Path(file)]
    else:
        raise CheckpointError(
            f"weights of {name}: file={str(file)!r}, but it is the mean of {len(networks)} networks. Set "
            f"{FOLDER_VARIABLE} to a folder with {networks[0]}.h5 and the others."
        )
    state = {}
    for number, path in enumerate(paths):
        theirs = read_keras_file(path)
        converted = convert_state(theirs, convert_scannet_state, path=path, program="ScanNet")
        state |= _numbered(converted, number)
    state |= _head(len(networks))
    label = _LABELS[variant]
    target = Target(label, "node", "multilabel", 1, (label,))
    return PublishedWeights(target, state, task=label, one_chain=True, has_vectors=False)


def _published_file(name: str, network: str) -> Path:
    """Return the file of a network in the folder of the environment variable, after comparing its checksum."""
    path = Path(os.environ.get(FOLDER_VARIABLE, "")) / f"{network}.h5"
    if not path.is_file():
        raise MissingExtraError(
            f"weights of {name} not found: {path}.\n"
            f"Run: git clone https://github.com/jertubiana/ScanNet, and set {FOLDER_VARIABLE} to its folder 'models'."
        )
    advice = "Download the file again. For other weights: pretrained(…, file=…)."
    check_published_file(path, CHECKSUMS[network], model=name, advice=advice)
    return path


def read_keras_file(path: str | Path) -> dict[str, Tensor]:
    """Read the parameters of a Keras file, "layer.parameter" → float32 tensor.

    Raises
    ------
    MissingExtraError
        h5py is not installed.
    CheckpointError
        The file cannot be read.
    """
    try:
        import h5py
    except ImportError as error:
        raise MissingExtraError("weights of ScanNet are HDF5 files. Run: pip install h5py") from error
    state: dict[str, Tensor] = {}

    def add(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            layer, _, parameter = name.partition("/")
            state[f"{layer}.{parameter.rpartition('/')[2].removesuffix(':0')}"] = torch.from_numpy(item[()])

    try:
        with h5py.File(path) as content:
            content.visititems(add)
    except OSError as error:
        raise CheckpointError(f"cannot read the weights {str(path)!r}: {error}. Download the file again.") from error
    return state


def convert_scannet_state(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert the parameters of one network to those of eight layers, numbered from 0.

    Axes of frames have another order: x, y, z of the program are e₂, e₃, e₁.
    """
    converted = {
        "0.tables.scan_atoms_scan_kind.weight": state["embedded_attributes_atom.embeddings"],
        "2.attention.weight": state["attention_pooling_coefficients_atom.kernel"].t(),
        "2.value.weight": state["attention_pooling_features_atom.kernel"].t(),
        "3.linear.weight": _of_letters(state["embedded_attributes_aa_projection.kernel"]),
        "6.linear.weight": state["SCAN_filters_aa_embedded_1_projection.kernel"].t(),
        "7.sharpness.weight": state["beta.kernel"].t(),
        "7.sharpness.bias": state["beta.bias"],
        "7.itself.weight": state["self_attention.kernel"].t(),
        "7.itself.bias": state["self_attention.bias"],
        "7.other.weight": state["cross_attention.kernel"].t(),
        "7.output.weight": state["node_output.kernel"].t(),
        "7.output.bias": state["node_output.bias"],
        "7.edge": state["edges_graph.kernel"][:, 0],
    }
    for layer, scale in ((1, "atom"), (5, "aa")):
        converted[f"{layer}.weight"] = state[f"SCAN_filter_input_{scale}.kernel12"]
        converted[f"{layer}.alone"] = state[f"SCAN_filter_input_{scale}.kernel1"]
        converted |= _kernels(state, f"embedded_local_coordinates_{scale}", layer, _AXES)
    converted |= _kernels(state, "embedded_local_coordinates_graph", 7, list(range(5)))
    norms = {
        1: "SCAN_filter_activity_atom",
        2: "SCAN_filters_atom_aggregated_activity",
        3: "embedded_attributes_aa",
        5: "SCAN_filter_activity_aa",
        6: "SCAN_filters_aa_embedded_1",
    }
    for layer, name in norms.items():
        bias = state[f"{name}_normalization.beta"]
        converted |= {
            f"{layer}.norm.weight": torch.ones_like(bias),
            f"{layer}.norm.bias": bias,
            f"{layer}.norm.running_mean": state[f"{name}_normalization.moving_mean"],
            f"{layer}.norm.running_var": state[f"{name}_normalization.moving_variance"],
            f"{layer}.norm.num_batches_tracked": torch.tensor(0),
        }
    return {name: value.contiguous() for name, value in converted.items()}


def _of_letters(kernel: Tensor) -> Tensor:
    """Return the map of the one-hot residue type, ``(20, C)`` to ``(C, 21)``; types are alphabetic, X is 0."""
    assert ALPHABET[:20] == "ACDEFGHIKLMNPQRSTVWY"  # contract: the order of the program
    return torch.cat([kernel, torch.zeros_like(kernel[:1])]).t()


def _kernels(state: Mapping[str, Tensor], name: str, layer: int, axes: list[int]) -> dict[str, Tensor]:
    """Return Gaussian kernels: centers ``(D, G)`` to ``(G, D)``, precisions ``(D, D, G)`` to ``(G, D, D)``."""
    center = state[f"{name}.centers"].t()[:, axes]
    precision = state[f"{name}.sqrt_precision"].permute(2, 0, 1)[:, :, axes]
    return {f"{layer}.kernels.center": center, f"{layer}.kernels.precision": precision}


def _numbered(state: Mapping[str, Tensor], number: int) -> dict[str, Tensor]:
    """Return the parameters of the layers of a network under their names in the model."""
    named = {}
    for name, value in state.items():
        layer, _, parameter = name.partition(".")
        named[f"layers.{int(layer) + _LAYERS * number}.{parameter}"] = value
    return named


def _head(number: int) -> dict[str, Tensor]:
    """Return the head: the difference of two logits of one network, or the log-odds of the mean of several."""
    weight = torch.tensor([[-1.0, 1.0]]) if number == 1 else torch.ones(1, 1)
    return {"head.mlp.0.weight": weight, "head.mlp.0.bias": torch.zeros(1)}
