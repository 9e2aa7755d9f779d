"""Tables of mutations: a column of texts, or columns of chain, residue number, insertion code and both types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from protgraph_plugins.mutations.mutation import Mutation, format_variant, parse_mutations

from protgraph.data.datasets import read_cells
from protgraph.errors import LabelError, MutationError
from protgraph.featurize import Failure

__all__ = ["MutationRow", "MutationTable", "read_mutation_table"]

#: Column → allowed names, in any case.
_NAMES = {
    "mutations": ("mutations", "mutation"),
    "file": ("file", "id", "pdb", "pdb_id"),
    "chain": ("chain", "chain_id"),
    "res_id": ("res_id", "residue_id", "residue_number"),
    "ins_code": ("ins_code", "insertion_code", "icode"),
    "wild_type": ("wild_type", "wt"),
    "mutant": ("mutant", "mut"),
    "n_mutations": ("n_mutations",),
}
_REQUIRED = ("res_id", "wild_type", "mutant")  # besides the chain, which may be empty
_PARTS = ("chain", *_REQUIRED)


@dataclass(frozen=True)
class MutationRow:
    """One variant of a table.

    Parameters
    ----------
    row : int
        Number of the row as in the file, from 1 for the header; from 0 for Parquet files and data frames.
    file : str
        Structure of the row, "" if the table has no such column.
    variant : tuple of Mutation
        All substitutions of the row, which are made together; empty for the wild type.
    cells : mapping of str to str
        All cells by column.
    """

    row: int
    file: str
    variant: tuple[Mutation, ...]
    cells: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class MutationTable:
    """Variants of a table, and the rows that are not valid.

    Parameters
    ----------
    where : str
        Name of the table.
    columns : tuple of str
    rows : tuple of MutationRow
        Valid rows in the order of the table.
    failures : tuple of Failure
        One per other row, with its number.
    rows_with_commas : int
        Valid rows whose text has commas between mutations.
    """

    where: str
    columns: tuple[str, ...]
    rows: tuple[MutationRow, ...]
    failures: tuple[Failure, ...]
    rows_with_commas: int = 0

    def failure(self, row: int, text: str, error: Exception) -> Failure:
        """Return the record of an error of a row, e.g. of a mutation that does not fit its structure."""
        return Failure.of(f"{self.where} row {row}", text, error)


def read_mutation_table(
    source: Any, *, default_chain: str | Callable[[str], str | None] | None = None
) -> MutationTable:
    """Read a table of variants, one per row."""
    cells = read_cells(source)
    (_, header), *body = cells.rows
    columns = _find_columns(header, cells.where)
    rows, failures, with_commas = [], [], 0
    for number, values in body:
        padding = [""] * (len(header) - len(values))
        cell_of_column = dict(zip(header, [*values, *padding], strict=False))
        named = {key: cell_of_column[name] for key, name in columns.items()}
        try:
            if len(values) > len(header):
                raise LabelError(f"the row has {len(values)} cells, and the header {len(header)}.")
            chain = default_chain(named.get("file", "")) if callable(default_chain) else default_chain
            variant = _variant(named, chain)
        except (MutationError, LabelError) as e:
            text = named.get("mutations") or " ".join(named.get(name, "") for name in _PARTS)
            failures.append(Failure.of(f"{cells.where} row {number}", text.strip(), e))
            continue
        rows.append(MutationRow(number, named.get("file", ""), variant, cell_of_column))
        with_commas += "," in named.get("mutations", "")
    return MutationTable(cells.where, tuple(header), tuple(rows), tuple(failures), with_commas)


def _find_columns(header: Sequence[str], where: str) -> dict[str, str]:
    """Return the name in the header of each column that the table has."""
    lower = [name.lower() for name in header]
    column_of_key: dict[str, str] = {}
    for key, names in _NAMES.items():
        here = [name for name in names if name in lower]
        if here and lower.count(here[0]) > 1:
            raise LabelError(f"two columns {here[0]!r} ({where}). Rename one.")
        if here:
            column_of_key[key] = header[lower.index(here[0])]
    # without columns of the residue, "mutant" has whole mutations, as in ProteinGym's tables
    if "mutant" in column_of_key and not {"mutations", "res_id", "wild_type"} & set(column_of_key):
        column_of_key["mutations"] = column_of_key.pop("mutant")
    if "mutations" not in column_of_key and not set(_PARTS) <= set(column_of_key):
        raise LabelError(
            f"no mutations in the columns {', '.join(header)} ({where}). Required: a column 'mutations' such as "
            f"'A:G42D+A:L45P', or the columns {', '.join(_PARTS)} and optionally ins_code."
        )
    return column_of_key


def _variant(named: Mapping[str, str], default_chain: str | None) -> tuple[Mutation, ...]:
    """Return the mutations of a row; if it has both forms, they must agree."""
    variant = _agreed(named, _of_text(named, default_chain), _of_columns(named, default_chain))
    count = named.get("n_mutations", "")
    if variant is None:
        has_residue = any(named.get(name) for name in _REQUIRED)
        if count == "0" and not has_residue:
            return ()
        raise MutationError(
            "the row has no mutation. Write 'WT' in the column 'mutations' for the wild type.", kind="syntax"
        )
    if count and count != str(len(variant)):
        raise MutationError(
            f"n_mutations is {count}, and the row has {len(variant)}: {format_variant(variant)}.",
            mutation=format_variant(variant),
            kind="ambiguous",
        )
    return variant


def _agreed(
    named: Mapping[str, str], from_text: tuple[Mutation, ...] | None, from_columns: tuple[Mutation, ...] | None
) -> tuple[Mutation, ...] | None:
    """Return the mutations of the form that a row has."""
    if from_text is None:
        return from_columns
    if from_columns is not None and from_text != from_columns:
        raise MutationError(
            f"two different mutations in one row: {named['mutations']!r} and {format_variant(from_columns)!r} in its "
            "other columns.",
            mutation=named["mutations"],
            kind="ambiguous",
        )
    return from_text


def _of_text(named: Mapping[str, str], default_chain: str | None) -> tuple[Mutation, ...] | None:
    """Return the mutations of the column "mutations"; None if the row has none there."""
    text = named.get("mutations")
    if not text:
        return None
    chain = named.get("chain", "")
    names_one_chain = chain and ";" not in chain
    return parse_mutations(text, default_chain=chain if names_one_chain else default_chain, join_commas=True)


def _of_columns(named: Mapping[str, str], default_chain: str | None) -> tuple[Mutation, ...] | None:
    """Return the mutations of the columns of a row, parsed as text so that the same rules apply; None without them."""
    if "chain" not in named or not all(named.get(name) for name in _REQUIRED):
        return None
    values = _values_of_columns(named, default_chain)
    texts = []
    for number, res_id in enumerate(values["res_id"]):
        code = values["ins_code"][number]
        brackets = f"[{code}]" if code else ""
        residue = f"{values['chain'][number]}:{values['wild_type'][number]}{res_id}{brackets}"
        texts.append(residue + values["mutant"][number])
    return parse_mutations("+".join(texts))


def _values_of_columns(named: Mapping[str, str], default_chain: str | None) -> dict[str, list[str]]:
    """Return the values of each column, one per mutation; a chain or codes that the row lacks are filled in."""
    values = {name: _values(named[name]) for name in _PARTS}
    size = len(values["res_id"])
    codes = _values(named.get("ins_code", ""))
    if not any(codes) and len(codes) != size:
        codes = [""] * size
    values["ins_code"] = codes
    if not named["chain"] and default_chain is not None:
        values["chain"] = [default_chain] * size
    lengths = {name: len(column) for name, column in values.items()}
    if set(lengths.values()) != {size}:
        counts = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise LabelError(f"columns with different numbers of values: {counts}. Separate one value per mutation by ';'.")
    return values


def _values(cell: str) -> list[str]:
    return [value.strip() for value in cell.split(";")]
