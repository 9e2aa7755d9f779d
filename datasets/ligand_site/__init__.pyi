# Written by tools/stubs.py.
from protgraph_datasets.ligand_site.dataset import LigandSite as LigandSite, LigandSiteDsdp as LigandSiteDsdp
