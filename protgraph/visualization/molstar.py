"""Program text of the viewer Mol*, from the installed distribution molstar-cli.

Not ipymolstar: its script loads only MolViewSpec states and requires ipywidgets (0.1.0); not nglview: it requires
JupyterLab (4.0.1); not py3Dmol: its pages load 3Dmol.js from another host (2.5.5). All of 2026-11-23.

References
----------
Sehnal et al. 2021, "Mol* Viewer: modern web app for 3D visualization and analysis of large biomolecular structures",
Nucleic Acids Research, doi:10.1093/nar/gkab314.
"""

from __future__ import annotations

import base64
import gzip
from functools import cache
from importlib import resources

from protgraph.errors import MissingExtraError

__all__ = ["molstar_script", "pack_base64"]


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
    with open(path, "rb") as stream:
        return pack_base64(stream.read())


def pack_base64(content: bytes) -> str:
    """Return content as base64 of gzip, which the page unpacks; 1.9 MB for the 5 MB of Mol* 5.11."""
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode("ascii")
