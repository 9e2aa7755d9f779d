# Written by tools/stubs.py.
from protgraph_plugins.attribution.attributions import (
    Attributions as Attributions,
    IntegratedGradients as IntegratedGradients,
    explain as explain,
    integrate_gradients as integrate_gradients,
)
