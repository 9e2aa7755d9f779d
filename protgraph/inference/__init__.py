"""Use of trained models: predictions and embeddings."""

from protgraph.inference.embedding import Embeddings, digest_of_model, embed, embedding_checkpoint
from protgraph.inference.model_run import featurized_proteins
from protgraph.inference.prediction import RESIDUE, origin_of, predict, probabilities
from protgraph.inference.prediction_table import Predictions, choose_value, target_names
from protgraph.inference.result_table import TABLE_SUFFIXES, ResultTable, Row, residue_keys, rows_by_file
from protgraph.inference.sites import find_sites, has_sites
from protgraph.inference.verification import ProteinDifference, Verification, verify_model, with_stored_predictions

__all__ = [
    "Embeddings",
    "Predictions",
    "ProteinDifference",
    "RESIDUE",
    "ResultTable",
    "Row",
    "TABLE_SUFFIXES",
    "Verification",
    "choose_value",
    "digest_of_model",
    "embed",
    "embedding_checkpoint",
    "featurized_proteins",
    "find_sites",
    "has_sites",
    "origin_of",
    "predict",
    "probabilities",
    "residue_keys",
    "rows_by_file",
    "target_names",
    "verify_model",
    "with_stored_predictions",
]
