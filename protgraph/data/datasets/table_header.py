"""Key columns of a label table: names of the protein, chain, residue number and insertion code, split and cluster."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from types import MappingProxyType

from protgraph.errors import LabelError

__all__ = ["KEY_ALIASES", "find_keys"]

KEY_ALIASES = MappingProxyType(
    {
        "file": ("file", "id", "pdb", "pdb_id", "pdb_code", "file_name", "path", "file_path", "entry", "entry_id"),
        "chain": ("chain", "chain_id", "chain_name", "auth_asym_id", "auth_chain_id", "pdb_chain"),
        "res_id": (
            *("res_id", "residue_id", "res_num", "res_number", "residue_num", "residue_number", "res_no"),
            *("res_seq", "auth_seq_id", "pdb_res_num"),
        ),
        "ins_code": ("ins_code", "icode", "insertion_code", "insertion", "pdbx_pdb_ins_code"),
        "split": ("split",),
        "cluster": ("cluster", "cluster_id"),
    }
)
"""Key column → the names that it may have, in any case, with or without spaces and underscores."""

#: Identifiers of mmCIF that count residues and name chains differently from the author identifiers.
_OTHER_NUMBERING = {"labelseqid": "auth_seq_id", "labelasymid": "auth_asym_id"}


def _plain(name: str) -> str:
    return re.sub(r"[\s_.\-]", "", name).lower()


_KEY_OF = {_plain(alias): key for key, aliases in KEY_ALIASES.items() for alias in aliases}


def find_keys(names: Sequence[str], labels: Collection[str], where: str) -> dict[str, str]:
    """Return the name of each key column that a header has.

    Examples
    --------
    >>> find_keys(["PDB", "Chain ID", "resnum", "site"], (), "labels.csv")
    {'file': 'PDB', 'chain': 'Chain ID', 'res_id': 'resnum'}
    """
    found: dict[str, str] = {}
    for name in names:
        key = _KEY_OF.get(_plain(name))
        if key is None or (name in labels and name not in KEY_ALIASES):
            continue
        if key in found:
            raise LabelError(
                f"{where}: columns {found[key]!r} and {name!r} are both for {key!r}. "
                "Remove or rename one, or use it as a label with --column (columns=)."
            )
        found[key] = name
    if "file" not in found:
        raise LabelError(f"{where}: no column 'file' (or 'id', 'pdb', 'path'). Columns: {', '.join(names)}.")
    for name in names:
        if (author := _OTHER_NUMBERING.get(_plain(name))) and name not in labels:
            raise LabelError(
                f"{where}: column {name!r} has another numbering than the author identifiers of residues. "
                f"Use {author!r} instead, and remove {name!r}."
            )
    return found
