"""Write a scene as one HTML page with the viewer Mol* inside, so that it works offline.

The script of Mol* comes from the distribution molstar-cli. Not ipymolstar: its script loads only MolViewSpec states and
requires ipywidgets (0.1.0); not nglview: it requires JupyterLab (4.0.1); not py3Dmol: its pages load 3Dmol.js from
another host (2.5.5). All of 2026-11-23.

References
----------
Sehnal et al. 2021, "Mol* Viewer: modern web app for 3D visualization and analysis of large biomolecular structures",
Nucleic Acids Research, doi:10.1093/nar/gkab314; wwPDB, PDBx/mmCIF dictionary, categories ``atom_site`` and ``entity``.
"""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import replace
from functools import cache
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from protgraph_plugins.view.palette import EDGE_COLORS, color_codes, scale_of
from protgraph_plugins.view.scene import Color, EdgeSet, Scene

from protgraph.errors import MissingExtraError, OptionError
from protgraph.file_io import write_text_file
from protgraph.structure import ALPHABET, Ligands, Residues
from protgraph.structure.io import cif_category
from protgraph.wording import count_noun

__all__ = ["limit_scene", "molstar_script", "scene_cif", "scene_page", "write_page"]

#: Largest numbers of edges of a kind and of atoms that a browser draws in seconds; residues are cells of the sequence.
_MAX_EDGES = 20_000
_MAX_ATOMS = 100_000
_MAX_RESIDUES = 25_000
#: Nucleotides that are drawn as a chain; others are drawn as ligands.
_NUCLEOTIDES = ("A", "C", "G", "U", "I", "DA", "DC", "DG", "DT", "DU", "DI")

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
{style}
</style>
</head>
<body>
<header><h1>{name}</h1><p>{summary}</p></header>
<form id="controls" aria-label="Display"></form>
<main id="panels"></main>
<p id="status" role="status">Loading the structure …</p>
{notes}<section id="groups" aria-label="Groups of residues"></section>
<section id="sequence" aria-label="Sequence"></section>
<noscript><p>This page requires JavaScript.</p></noscript>
<script type="text/plain" id="molstar">{molstar}</script>
<script type="text/plain" id="scene">{scene}</script>
<script>
{script}
</script>
</body>
</html>
"""


def write_page(scene: Scene, path: str | Path) -> Path:
    """Write the page: cartoon, sticks, surface, ligands, edges of each kind, colors, and the sequence.

    An existing file is replaced.

    Raises
    ------
    MissingExtraError
        molstar-cli is not installed.
    OptionError
        The protein has more residues than a browser draws.
    """
    path = Path(path)
    write_text_file(path, scene_page(scene))
    return path


def scene_page(scene: Scene) -> str:
    """Return the page as HTML text.

    Raises
    ------
    MissingExtraError
        molstar-cli is not installed.
    OptionError
        The protein has more residues than a browser draws.
    """
    scene = limit_scene(scene)
    residues = scene.residues
    chains = ", ".join(name or "blank" for name in residues.chain_names)
    summary = count_noun(len(residues), "residue")
    if len(residues.chain_names) > 1:
        summary += f"; chains {chains}"
    elif residues.chain_names[0]:
        summary += f"; chain {chains}"
    data = json.dumps(scene_data(scene), separators=(",", ":"), ensure_ascii=False)
    return _PAGE.format(
        title=escape(f"{residues.name}, colored by {scene.color.name}"),
        name=escape(residues.name),
        summary=escape(summary),
        notes="".join(f'<p class="note">{escape(note)}</p>\n' for note in scene.notes),
        style=_file("page.css"),
        molstar=molstar_script(),
        scene=pack_base64(data.encode()),
        script=_file("page_panel.js") + _file("page_controls.js"),
    )


def limit_scene(scene: Scene) -> Scene:
    """Return what of a scene a browser draws in seconds, with a note on each part that is left out.

    Of a kind with too many edges, the widest remain, and among equal ones those at regular intervals; of a protein with
    too many atoms, N, CA, C and O.

    Raises
    ------
    OptionError
        The protein has too many residues.
    """
    residues, notes = scene.residues, list(scene.notes)
    if len(residues) > _MAX_RESIDUES:
        raise OptionError(
            f"page of {residues.name}: {len(residues):,} residues. Allowed: {_MAX_RESIDUES:,}. Select chains "
            "(--chain, chains=), or write a script for PyMOL or ChimeraX (--format)."
        )
    if len(residues.atom_name) > _MAX_ATOMS:
        backbone = np.isin(residues.atom_name, ("N", "CA", "C", "O"))
        notes.append(f"side chains are left out: {len(residues.atom_name):,} atoms, at most {_MAX_ATOMS:,} are drawn")
        fields = ("atom_pos", "atom_name", "atom_element", "atom_residue")
        residues = replace(residues, **{field: getattr(residues, field)[backbone] for field in fields})
    edges = []
    for kind in scene.edges:
        count = len(kind.pairs)
        if count > _MAX_EDGES:
            notes.append(
                f"{kind.name}: {_MAX_EDGES:,} of {count:,} edges are drawn, the widest and of equal ones a part"
            )
            # of equal edges, neighbors in the list are far apart in this order
            spread = np.arange(count) * _MAX_EDGES % count
            keep = np.sort(np.lexsort((spread, -kind.width))[:_MAX_EDGES])
            kind = EdgeSet(kind.name, kind.pairs[keep], kind.width[keep])
        edges.append(kind)
    return replace(scene, residues=residues, edges=tuple(edges), notes=tuple(notes))


def scene_data(scene: Scene) -> dict[str, Any]:
    """Return what the page shows as plain data: the structure, residues, colors, edges."""
    r = scene.residues
    colors = [scene.color, *scene.shown]
    names = [color.name for color in colors]
    return {
        "name": r.name,
        "structure": scene_cif(r),
        "ligands": 0 if r.ligands is None else len(r.ligands),
        "chain": [name or "blank" for name in r.chain.tolist()],
        "number": [f"{number}{ins}" for number, ins in zip(r.res_id.tolist(), r.ins_code.tolist(), strict=True)],
        "type": r.res_name.tolist(),
        "letter": [ALPHABET[i] for i in r.aatype.tolist()],
        "pos": np.round(r.pos.astype(float), 2).tolist(),
        "axes": principal_axes(r.pos).round(4).tolist(),
        "colors": [_color(color) for color in colors],
        "edges": [_edges(edges, i) for i, edges in enumerate(scene.edges)],
        "groups": [
            {"name": group.name, "rows": group.rows.tolist(), "values": dict(group.values)} for group in scene.groups
        ],
        "beside": None if scene.beside is None else names.index(scene.beside),
    }


def principal_axes(pos: np.ndarray) -> np.ndarray:
    """Return the axes of largest to smallest extent of positions ``(N, 3)``, Å, as rows of a rotation ``(3, 3)``.

    Examples
    --------
    >>> principal_axes(np.array([[0.0, 0, 0], [0, 5, 0], [0, 2, 1]])).round(2).tolist()[2]
    [1.0, 0.0, 0.0]
    """
    known = pos[~np.isnan(pos).any(1)].astype(float)
    _, axes = np.linalg.eigh(np.cov(known.T, bias=True) if len(known) > 1 else np.eye(3))
    axes = axes.T[::-1]
    return axes * np.sign(np.linalg.det(axes))


def scene_cif(residues: Residues) -> str:
    """Return mmCIF text with the heavy atoms of the protein and its ligands.

    ``label_seq_id`` of the protein (entity 1) is the row of the residue from 1, by which the page finds the residue
    under the pointer. Nucleotides are entity 2, all other molecules entity 3. Chain, number and insertion code of the
    file are the ``auth_`` items.
    """
    owner = residues.atom_residue
    index = {name: i for i, name in enumerate(residues.chain_names)}
    chain_ids = np.array([f"P{index[name]}" for name in residues.chain.tolist()])
    tables = [{
        "group_PDB": np.full(len(owner), "ATOM"),
        "label_asym_id": chain_ids[owner],
        "label_entity_id": np.full(len(owner), 1),
        "label_seq_id": (owner + 1).astype(str),
        **_atom_items(residues, owner),
    }]  # fmt: skip
    ligands = residues.ligands
    if ligands is not None and len(ligands):
        owner = ligands.atom_molecule
        is_nucleotide = np.isin(ligands.res_name, _NUCLEOTIDES)
        number = np.arange(len(ligands))
        strand_ids = np.array([f"N{name}" for name in ligands.chain.tolist()])
        molecule_ids = np.array([f"L{i}" for i in number.tolist()])
        tables.append({
            "group_PDB": np.full(len(owner), "HETATM"),
            "label_asym_id": np.where(is_nucleotide, strand_ids, molecule_ids)[owner],
            "label_entity_id": np.where(is_nucleotide, 2, 3)[owner],
            "label_seq_id": np.where(is_nucleotide, (number + 1).astype(str), "")[owner],
            **_atom_items(ligands, owner),
        })  # fmt: skip
    atoms = {}
    for item in tables[0]:
        atoms[item] = np.concatenate([table[item] for table in tables])
    count = len(atoms["group_PDB"])
    entity = {"id": np.array([1, 2, 3]), "type": np.array(["polymer", "polymer", "non-polymer"])}
    polymer = {"entity_id": np.array([1, 2]), "type": np.array(["polypeptide(L)", "polydeoxyribonucleotide"])}
    site = {"id": np.arange(1, count + 1), "pdbx_PDB_model_num": np.ones(count, np.int64), **atoms}
    categories = {"entity": entity, "entity_poly": polymer, "atom_site": site}
    return "data_scene\n" + "".join(cif_category(name, columns) for name, columns in categories.items())


def _atom_items(molecules: Residues | Ligands, owner: np.ndarray) -> dict[str, np.ndarray]:
    """Return the items that protein and ligands have in common; ``owner`` ``(A,)`` is the residue or molecule."""
    elements = [element.capitalize() or "X" for element in molecules.atom_element.tolist()]
    x, y, z = molecules.atom_pos.astype(float).T
    return {
        "type_symbol": np.array(elements, "U2"),
        "label_atom_id": molecules.atom_name,
        "label_comp_id": molecules.res_name[owner],
        "auth_asym_id": molecules.chain[owner],
        "auth_seq_id": molecules.res_id[owner],
        "pdbx_PDB_ins_code": molecules.ins_code[owner],
        "Cartn_x": x,
        "Cartn_y": y,
        "Cartn_z": z,
    }


def _color(color: Color) -> dict[str, Any]:
    scale = scale_of(color)
    return {
        "name": color.name,
        "unit": color.unit,
        "codes": color_codes(color),
        "texts": [color.value_text(i) for i in range(len(color.values))],
        "ends": [f"{end:.3g}" for end in (scale.low, scale.high)],
        "categories": scale.categories,
        "stops": scale.stops,
        "missing": scale.missing,
    }


def _edges(edges: EdgeSet, i: int) -> dict[str, Any]:
    return {
        "name": edges.name,
        "color": EDGE_COLORS[i % len(EDGE_COLORS)],
        "pairs": edges.pairs.tolist(),
        "width": np.round(edges.width, 2).tolist(),
    }


def molstar_script() -> str:
    """Return the script of Mol*, packed by :func:`pack_base64`.

    Raises
    ------
    MissingExtraError
        molstar-cli is not installed.
    """
    try:
        file = resources.files("molstar_cli") / "static" / "molstar" / "molstar.js"
    except ModuleNotFoundError as e:
        raise MissingExtraError(
            'HTML pages require molstar-cli, which is not installed. Run: pip install "protgraph-pyg[view]"'
        ) from e
    return _packed(str(file))


@cache
def _packed(path: str) -> str:
    return pack_base64(Path(path).read_bytes())


def pack_base64(content: bytes) -> str:
    """Return content as base64 of gzip, which the page unpacks; 1.9 MB for the 5 MB of Mol* 5.11."""
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode("ascii")


def _file(name: str) -> str:
    return resources.files("protgraph_plugins.view").joinpath(name).read_text(encoding="utf-8")
