"""Sequence design for backbones: decoding orders, constraints, sampling and scoring of residue types.

Names are imported on first use (PEP 562).
"""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module that exports it.
_HOME = {
    "Device": "protgraph_plugins.design.command_inputs",
    "load_model": "protgraph_plugins.design.command_inputs",
    "models_with_weights": "protgraph_plugins.design.command_inputs",
    "protein_files": "protgraph_plugins.design.command_inputs",
    "Constraints": "protgraph_plugins.design.constraints",
    "Decoding": "protgraph_plugins.design.decoding",
    "check_design_model": "protgraph_plugins.design.decoding",
    "conditional_log_probs": "protgraph_plugins.design.decoding",
    "decoding_ranks": "protgraph_plugins.design.decoding",
    "encode": "protgraph_plugins.design.decoding",
    "encoded_graphs": "protgraph_plugins.design.decoding",
    "forward_order": "protgraph_plugins.design.decoding",
    "masked_log_probs": "protgraph_plugins.design.decoding",
    "predicts_residue_types": "protgraph_plugins.design.decoding",
    "random_decoding_order": "protgraph_plugins.design.decoding",
    "random_deviates": "protgraph_plugins.design.decoding",
    "teacher_forced_log_probs": "protgraph_plugins.design.decoding",
    "unconditional_log_probs": "protgraph_plugins.design.decoding",
    "DatasetMetrics": "protgraph_plugins.design.evaluation",
    "DesignMetrics": "protgraph_plugins.design.evaluation",
    "evaluate_dataset": "protgraph_plugins.design.evaluation",
    "evaluate_design": "protgraph_plugins.design.evaluation",
    "design_records": "protgraph_plugins.design.fasta",
    "read_design_sequences": "protgraph_plugins.design.fasta",
    "sequences_by_protein": "protgraph_plugins.design.fasta",
    "write_design_fasta": "protgraph_plugins.design.fasta",
    "RankedDesign": "protgraph_plugins.design.ranking",
    "rank_designs": "protgraph_plugins.design.ranking",
    "ranking_table": "protgraph_plugins.design.ranking",
    "write_design_structures": "protgraph_plugins.design.ranking",
    "Design": "protgraph_plugins.design.results",
    "Scores": "protgraph_plugins.design.results",
    "write_designs": "protgraph_plugins.design.results",
    "write_scores": "protgraph_plugins.design.results",
    "RefusedProteins": "protgraph_plugins.design.run",
    "SCORING_MODES": "protgraph_plugins.design.run",
    "design_sequences": "protgraph_plugins.design.run",
    "score_sequences": "protgraph_plugins.design.run",
    "SampledSequences": "protgraph_plugins.design.sampling",
    "sample_sequences": "protgraph_plugins.design.sampling",
    "select_residues": "protgraph_plugins.design.selection",
    "DesignSpec": "protgraph_plugins.design.spec",
    "ResidueTable": "protgraph_plugins.design.spec",
    "read_residue_table": "protgraph_plugins.design.spec",
    "read_design_specs": "protgraph_plugins.design.spec",
    "design_states": "protgraph_plugins.design.states",
    "read_states": "protgraph_plugins.design.states",
    "insert_unresolved": "protgraph_plugins.design.unresolved",
    "model_rows": "protgraph_plugins.design.unresolved",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
