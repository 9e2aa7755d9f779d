"""Reading and writing: PDB, mmCIF, BinaryCIF and FASTA files, registered formats, archives, biotite arrays."""

from protgraph.structure.io.archives import Accession, as_accession, fetch, parse_accession
from protgraph.structure.io.atom_array import from_atom_array, to_atom_array
from protgraph.structure.io.cif_text import cif_category
from protgraph.structure.io.fasta import FASTA_SUFFIXES, FastaRecord, load_fasta, read_fasta
from protgraph.structure.io.load import load_structure
from protgraph.structure.io.read_options import SEARCH, ReadOptions
from protgraph.structure.io.readers import read_atoms
from protgraph.structure.io.registered_readers import ParsedFile, Reader
from protgraph.structure.io.residue_values import ResidueValues, write_defattr
from protgraph.structure.io.sniff import FileContent, is_fasta, read_file
from protgraph.structure.io.sources import expand_files, is_source, open_source, proteins_of, read_residues
from protgraph.structure.io.transfer import FileNotOnServerError, cache_dir, download, is_offline
from protgraph.structure.io.write_values import WrittenStructure, write_residue_values

__all__ = [
    "FASTA_SUFFIXES",
    "SEARCH",
    "Accession",
    "FastaRecord",
    "FileContent",
    "FileNotOnServerError",
    "ParsedFile",
    "ReadOptions",
    "Reader",
    "ResidueValues",
    "WrittenStructure",
    "as_accession",
    "cache_dir",
    "cif_category",
    "download",
    "expand_files",
    "fetch",
    "from_atom_array",
    "is_fasta",
    "is_offline",
    "is_source",
    "load_fasta",
    "load_structure",
    "open_source",
    "parse_accession",
    "proteins_of",
    "read_atoms",
    "read_fasta",
    "read_file",
    "read_residues",
    "to_atom_array",
    "write_defattr",
    "write_residue_values",
]
