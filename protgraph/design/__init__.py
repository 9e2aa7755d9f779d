"""Sequence design for backbones: decoding orders, constraints, sampling and scoring of residue types."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module.
_HOME = {
    name: f"protgraph.design.{module}"
    for module, names in {
        "constraints": ("Constraints",),
        "decoding": (
            "Decoding",
            "check_design_model",
            "conditional_log_probs",
            "decoding_ranks",
            "encode",
            "encoded_graphs",
            "forward_order",
            "masked_log_probs",
            "predicts_residue_types",
            "random_decoding_order",
            "random_deviates",
            "teacher_forced_log_probs",
            "unconditional_log_probs",
        ),
        "evaluation": ("DesignMetrics", "evaluate_design"),
        "fasta": ("design_records", "read_design_sequences", "sequences_by_protein", "write_design_fasta"),
        "results": ("Design", "Scores", "write_designs", "write_scores"),
        "run": ("SCORING_MODES", "RefusedProteins", "design_sequences", "score_sequences"),
        "sampling": ("SampledSequences", "sample_sequences"),
        "selection": ("select_residues",),
        "spec": ("DesignSpec", "ResidueTable", "read_residue_table"),
        "unresolved": ("insert_unresolved", "model_rows"),
    }.items()
    for name in names
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
