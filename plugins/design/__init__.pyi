# Written by tools/stubs.py.
from protgraph_plugins.design.command_inputs import (
    Device as Device,
    load_model as load_model,
    models_with_weights as models_with_weights,
    protein_files as protein_files,
)
from protgraph_plugins.design.constraints import Constraints as Constraints
from protgraph_plugins.design.decoding import (
    Decoding as Decoding,
    check_design_model as check_design_model,
    conditional_log_probs as conditional_log_probs,
    decoding_ranks as decoding_ranks,
    encode as encode,
    encoded_graphs as encoded_graphs,
    forward_order as forward_order,
    masked_log_probs as masked_log_probs,
    predicts_residue_types as predicts_residue_types,
    random_decoding_order as random_decoding_order,
    random_deviates as random_deviates,
    teacher_forced_log_probs as teacher_forced_log_probs,
    unconditional_log_probs as unconditional_log_probs,
)
from protgraph_plugins.design.evaluation import (
    DatasetMetrics as DatasetMetrics,
    DesignMetrics as DesignMetrics,
    evaluate_dataset as evaluate_dataset,
    evaluate_design as evaluate_design,
)
from protgraph_plugins.design.fasta import (
    design_records as design_records,
    read_design_sequences as read_design_sequences,
    sequences_by_protein as sequences_by_protein,
    write_design_fasta as write_design_fasta,
)
from protgraph_plugins.design.ranking import (
    RankedDesign as RankedDesign,
    rank_designs as rank_designs,
    ranking_table as ranking_table,
    write_design_structures as write_design_structures,
)
from protgraph_plugins.design.results import (
    Design as Design,
    Scores as Scores,
    write_designs as write_designs,
    write_scores as write_scores,
)
from protgraph_plugins.design.run import (
    RefusedProteins as RefusedProteins,
    SCORING_MODES as SCORING_MODES,
    design_sequences as design_sequences,
    score_sequences as score_sequences,
)
from protgraph_plugins.design.sampling import SampledSequences as SampledSequences, sample_sequences as sample_sequences
from protgraph_plugins.design.selection import select_residues as select_residues
from protgraph_plugins.design.spec import (
    DesignSpec as DesignSpec,
    ResidueTable as ResidueTable,
    read_design_specs as read_design_specs,
    read_residue_table as read_residue_table,
)
from protgraph_plugins.design.states import design_states as design_states, read_states as read_states
from protgraph_plugins.design.unresolved import insert_unresolved as insert_unresolved, model_rows as model_rows
