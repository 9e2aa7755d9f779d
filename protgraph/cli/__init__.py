"""The command line: one module a command or two, loaded when that command is asked for.

The names of this package are for commands of extensions, which register them in ``protgraph.commands``.
"""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module that exports it.
_HOME = {
    # printing
    "print_error": "protgraph.cli.error_report",
    "print_rows": "protgraph.cli.console",
    "print_warning": "protgraph.cli.error_report",
    "progress_bar": "protgraph.cli.console",
    "text_console": "protgraph.cli.console",
    # output files
    "FAILURES_SUFFIX": "protgraph.cli.output_path",
    "Overwrite": "protgraph.cli.output_path",
    "WARNINGS_SUFFIX": "protgraph.cli.output_path",
    "TableOutput": "protgraph.cli.table_output",
    "check_output": "protgraph.cli.output_path",
    "check_output_folder": "protgraph.cli.output_path",
    "check_output_store": "protgraph.cli.output_path",
    # structure files and labels
    "LabelFile": "protgraph.cli.read_options",
    "SetValues": "protgraph.cli.model_argument",
    "chain_names": "protgraph.cli.read_options",
    "chains_option": "protgraph.cli.read_options",
    "find_checkpoint": "protgraph.cli.model_argument",
    "find_model": "protgraph.cli.model_argument",
    "model_names": "protgraph.cli.model_argument",
    "parse_feature": "protgraph.cli.featurize",
    "print_reader_notes": "protgraph.cli.read_options",
    "reads_structures": "protgraph.cli.read_options",
    "with_standard_input": "protgraph.cli.read_options",
    # values per residue for molecular viewers
    "Chimerax": "protgraph.cli.structure_output",
    "Defattr": "protgraph.cli.structure_output",
    "Pymol": "protgraph.cli.structure_output",
    "Structure": "protgraph.cli.structure_output",
    "StructureOutput": "protgraph.cli.structure_output",
    # files that fail, and interruptions
    "end_interrupted": "protgraph.cli.failures",
    "end_with_files_left": "protgraph.cli.failures",
    "failures_of_errors": "protgraph.cli.failures",
    "report_failures": "protgraph.cli.failures",
    # commands
    "allow_generators": "protgraph.deferred_imports",
    "CommandGroup": "protgraph.cli.command_group",
}

__all__ = [*_HOME]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
