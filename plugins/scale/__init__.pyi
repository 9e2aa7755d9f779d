# Written by tools/stubs.py.
from protgraph_plugins.scale.ray_engine import run_with_ray as run_with_ray
from protgraph_plugins.scale.remote_store import RemoteFiles as RemoteFiles
