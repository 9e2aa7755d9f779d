"""Sequence design for backbones: decoding orders, constraints, sampling and scoring of residue types.

Names are imported on first use (PEP 562).
"""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module of this package.
_MODULES = {
    "Constraints": "constraints",
    "DatasetMetrics": "evaluation",
    "Decoding": "decoding",
    "Design": "results",
    "DesignMetrics": "evaluation",
    "DesignSpec": "spec",
    "Device": "command_inputs",
    "RefusedProteins": "run",
    "ResidueTable": "spec",
    "SCORING_MODES": "run",
    "SampledSequences": "sampling",
    "Scores": "results",
    "check_design_model": "decoding",
    "conditional_log_probs": "decoding",
    "decoding_ranks": "decoding",
    "design_records": "fasta",
    "design_sequences": "run",
    "encode": "decoding",
    "encoded_graphs": "decoding",
    "evaluate_dataset": "evaluation",
    "evaluate_design": "evaluation",
    "forward_order": "decoding",
    "insert_unresolved": "unresolved",
    "load_model": "command_inputs",
    "masked_log_probs": "decoding",
    "model_rows": "unresolved",
    "models_with_weights": "command_inputs",
    "predicts_residue_types": "decoding",
    "protein_files": "command_inputs",
    "random_decoding_order": "decoding",
    "random_deviates": "decoding",
    "read_design_sequences": "fasta",
    "read_residue_table": "spec",
    "sample_sequences": "sampling",
    "score_sequences": "run",
    "select_residues": "selection",
    "sequences_by_protein": "fasta",
    "teacher_forced_log_probs": "decoding",
    "unconditional_log_probs": "decoding",
    "write_design_fasta": "fasta",
    "write_designs": "results",
    "write_scores": "results",
}

__all__ = list(_MODULES)
__getattr__, __dir__ = lazy_names(__name__, {name: f"{__name__}.{module}" for name, module in _MODULES.items()})
