# Written by tools/stubs.py.
from protgraph_plugins.foldcomp.database import (
    FoldcompDatabase as FoldcompDatabase,
    open_foldcomp_database as open_foldcomp_database,
)
from protgraph_plugins.foldcomp.reader import FoldcompReader as FoldcompReader
