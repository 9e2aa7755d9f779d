"""paratope: antibody residues that touch the antigen, variable domains without the antigen."""

from protgraph_datasets.paratope.dataset import Paratope, ParatopeExpanded, ParatopeJoined

__all__ = ["Paratope", "ParatopeExpanded", "ParatopeJoined"]
