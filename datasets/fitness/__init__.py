"""Deep mutational scans of seven proteins with the splits of METL."""

from protgraph_datasets.fitness.dataset import Fitness, FitnessMutation, FitnessPosition

__all__ = ["Fitness", "FitnessMutation", "FitnessPosition"]
