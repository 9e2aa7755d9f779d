"""Layers of GCPNet equal ProteinWorkshop's program (reference vectors), and see mirror images."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from protgraph_plugins.gcpnet.layers import GCPFrames
from protgraph_plugins.gvp import ScalarVectorWidths

import protgraph as pg
from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import WiringError
from protgraph.ops import Edges, Proteins
from protgraph.testing.symmetry import relative_error
from tests.reference.gcpnet import load_interaction_layer


def flat(scalars, vectors):
    return torch.cat([scalars, vectors.flatten(1)], 1)


def test_reference_state_gives_reference_numbers(shared_reference):
    path = shared_reference / "gcpnet_pw" / "gcp_interaction.npz"
    z = {k: torch.from_numpy(v) for k, v in np.load(path).items()}
    layer = load_interaction_layer(
        {k[2:]: v for k, v in z.items() if k.startswith("w/")}, edge=ScalarVectorWidths(8, 4), bottleneck=4
    ).eval()

    # Row 0 of their edge index is the node that sums messages: our target, row 1, which is sorted.
    index = z["in/edge_index"].flip(0)
    order = index[1].argsort(stable=True)
    edges = Edges(index[:, order], 20)
    frames = GCPFrames({name: field(name) for name in ("pos", "edges", "proteins")})
    proteins = Proteins(torch.zeros(20, dtype=torch.long), (20,))
    (pos,) = (value for key, value in z.items() if key.startswith("in/pos"))  # relative to their mean
    frame = frames({"pos": pos, "edges": edges, "proteins": proteins})["edge_frame"]
    assert relative_error(frame, z["mid/frames"][order].flatten(1)) <= 1e-10

    h, chi = z["in/h"].requires_grad_(), z["in/chi"].requires_grad_()
    edge_attr = flat(z["in/e"], z["in/xi"])[order]
    out = layer({"h": flat(h, chi), "edges": edges, "edge_attr": edge_attr, "edge_frame": frame})["h"]
    assert relative_error(out, flat(z["out/h"], z["out/chi"])) <= 1e-10
    scalars, vectors = out[:, :8].flatten(), out[:, 8:].flatten()
    weights = torch.linspace(-1, 1, len(scalars)).double(), torch.linspace(1, -1, len(vectors)).double()
    ((scalars * weights[0]).sum() + (vectors * weights[1]).sum()).backward()
    assert relative_error(h.grad, z["grad/h"]) <= 1e-6  # the vectors' own weights are float32
    assert relative_error(chi.grad, z["grad/chi"]) <= 1e-6


def test_frames_of_a_mirror_image_are_not_the_mirrored_frames(scene, float64):
    s = scene()
    layer = GCPFrames({name: field(name) for name in ("pos", "edges", "proteins")})
    pos, mirror = torch.randn(s.num_nodes, 3), torch.diag(torch.tensor([1.0, 1.0, -1.0]))
    frame, mirrored = (layer(s.inputs(layer.fields, pos=x))["edge_frame"].view(-1, 3, 3) for x in (pos, pos @ mirror))
    torch.testing.assert_close(mirrored[:, ::2], frame[:, ::2] @ mirror)
    torch.testing.assert_close(mirrored[:, 1], -frame[:, 1] @ mirror)
    assert frame[:, 1].abs().max() > 0.1


def test_frames_are_three_vectors():
    fields = {"h": FieldSpec("h", "node", "8x0e+4x1o"), "edges": field("edges")}
    fields |= {"edge_attr": FieldSpec("edge_attr", "edge", "8x0e"), "edge_frame": FieldSpec("e", "edge", "1x1o")}
    with pytest.raises(WiringError, match="gcp_frames"):
        pg.layers.create("gcp_conv", fields)
