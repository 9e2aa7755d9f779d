# Written by tools/stubs.py.
from protgraph_plugins.alignment.formats import AlignedSequences as AlignedSequences, read_alignment as read_alignment
from protgraph_plugins.alignment.library import align_protein as align_protein, alignment_files as alignment_files
from protgraph_plugins.alignment.profile import ABSENT as ABSENT
from protgraph_plugins.alignment.reader import AlignmentReader as AlignmentReader
