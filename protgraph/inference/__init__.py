"""Use of trained models: predictions, embeddings and attributions."""

from protgraph.inference.attribution import Attributions, explain
from protgraph.inference.embedding import Embeddings, digest_of_model, embed, embedding_checkpoint
from protgraph.inference.model_run import featurized_proteins
from protgraph.inference.prediction import predict, probabilities
from protgraph.inference.prediction_table import Predictions, choose_value, target_names
from protgraph.inference.result_table import TABLE_SUFFIXES, ResultTable
from protgraph.inference.sites import find_sites, has_sites
from protgraph.inference.verification import ProteinDifference, Verification, verify_model, with_stored_predictions

__all__ = [
    "Attributions",
    "Embeddings",
    "Predictions",
    "ProteinDifference",
    "ResultTable",
    "TABLE_SUFFIXES",
    "Verification",
    "choose_value",
    "digest_of_model",
    "embed",
    "embedding_checkpoint",
    "explain",
    "featurized_proteins",
    "find_sites",
    "has_sites",
    "predict",
    "probabilities",
    "target_names",
    "verify_model",
    "with_stored_predictions",
]
