# Written by tools/stubs.py.
from protgraph_plugins.gpt.family import FAMILY as FAMILY
from protgraph_plugins.gpt.generation import (
    GeneratedSequence as GeneratedSequence,
    generate as generate,
    write_generated as write_generated,
)
from protgraph_plugins.gpt.sampling import (
    sample_classes as sample_classes,
    sampling_probabilities as sampling_probabilities,
)
