# Written by tools/stubs.py.
from protgraph.cli.command_group import CommandGroup as CommandGroup
from protgraph.cli.console import print_rows as print_rows, progress_bar as progress_bar, text_console as text_console
from protgraph.cli.error_report import print_error as print_error, print_warning as print_warning
from protgraph.cli.failures import (
    end_interrupted as end_interrupted,
    end_with_files_left as end_with_files_left,
    failures_of_errors as failures_of_errors,
    report_failures as report_failures,
)
from protgraph.cli.featurize import parse_feature as parse_feature
from protgraph.cli.model_argument import (
    SetValues as SetValues,
    find_checkpoint as find_checkpoint,
    find_model as find_model,
    model_names as model_names,
)
from protgraph.cli.output_path import (
    FAILURES_SUFFIX as FAILURES_SUFFIX,
    Overwrite as Overwrite,
    WARNINGS_SUFFIX as WARNINGS_SUFFIX,
    check_output as check_output,
    check_output_folder as check_output_folder,
    check_output_store as check_output_store,
)
from protgraph.cli.read_options import (
    LabelFile as LabelFile,
    chain_names as chain_names,
    chains_option as chains_option,
    print_reader_notes as print_reader_notes,
    reads_structures as reads_structures,
    with_standard_input as with_standard_input,
)
from protgraph.cli.structure_output import (
    Chimerax as Chimerax,
    Defattr as Defattr,
    Pymol as Pymol,
    Structure as Structure,
    StructureOutput as StructureOutput,
)
from protgraph.cli.table_output import TableOutput as TableOutput
from protgraph.deferred_imports import allow_generators as allow_generators
