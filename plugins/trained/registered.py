"""Registered trained models, one folder each, written by ``protgraph recipe FILE -o FOLDER``."""

from __future__ import annotations

from pathlib import Path

from protgraph import TrainedModel

__all__ = [
    "DDG",
    "DDG_BINDING",
    "DNA_SITE",
    "LIGAND_SITE",
    "MODEL_QUALITY",
    "PARATOPE",
    "PPI_SITE",
    "SECONDARY_STRUCTURE",
    "STRUCTURE_ENCODER",
    "SUGAR_SITE",
]
ENTRY_POINTS = {
    "protgraph.trained_models": {
        "ddg": "DDG",
        "ddg_binding": "DDG_BINDING",
        "dna_site": "DNA_SITE",
        "ligand_site": "LIGAND_SITE",
        "model_quality": "MODEL_QUALITY",
        "paratope": "PARATOPE",
        "ppi_site": "PPI_SITE",
        "secondary_structure": "SECONDARY_STRUCTURE",
        "structure_encoder": "STRUCTURE_ENCODER",
        "sugar_site": "SUGAR_SITE",
    }
}

_FOLDER = Path(__file__).parent

DDG = TrainedModel(_FOLDER / "ddg", check_code=False)
DDG_BINDING = TrainedModel(_FOLDER / "ddg_binding", check_code=False)
DNA_SITE = TrainedModel(_FOLDER / "dna_site", check_code=False)
LIGAND_SITE = TrainedModel(_FOLDER / "ligand_site", check_code=False)
MODEL_QUALITY = TrainedModel(_FOLDER / "model_quality", check_code=False)
PARATOPE = TrainedModel(_FOLDER / "paratope", check_code=False)
PPI_SITE = TrainedModel(_FOLDER / "ppi_site", check_code=False)
SECONDARY_STRUCTURE = TrainedModel(_FOLDER / "secondary_structure", check_code=False)
STRUCTURE_ENCODER = TrainedModel(_FOLDER / "structure_encoder", check_code=False)
SUGAR_SITE = TrainedModel(_FOLDER / "sugar_site", check_code=False)
