"""Pictures of proteins and of what models compute for them: pages, scripts for viewers, attention maps."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module that exports it.
_HOME = {
    # scenes
    "Color": "protgraph_plugins.view.scene",
    "EdgeSet": "protgraph_plugins.view.scene",
    "ResidueGroup": "protgraph_plugins.view.scene",
    "Scene": "protgraph_plugins.view.scene",
    "agreement": "protgraph_plugins.view.residue_colors",
    "attention_edges": "protgraph_plugins.view.residue_colors",
    "attribution_color": "protgraph_plugins.view.residue_colors",
    "color_of": "protgraph_plugins.view.scene",
    "edge_set": "protgraph_plugins.view.scene",
    "label_color": "protgraph_plugins.view.residue_colors",
    "make_scene": "protgraph_plugins.view.scene",
    "prediction_colors": "protgraph_plugins.view.residue_colors",
    "view": "protgraph_plugins.view.protein_view",
    # pages and scripts
    "limit_scene": "protgraph_plugins.view.page",
    "molstar_script": "protgraph_plugins.view.page",
    "write_chimerax_script": "protgraph_plugins.view.viewer_scripts",
    "write_molviewspec": "protgraph_plugins.view.viewer_scripts",
    "write_page": "protgraph_plugins.view.page",
    "write_pymol_script": "protgraph_plugins.view.viewer_scripts",
    "write_scene_chimerax": "protgraph_plugins.view.viewer_scripts",
    "write_scene_pymol": "protgraph_plugins.view.viewer_scripts",
    # attention
    "AttentionReport": "protgraph_plugins.view.attention",
    "HeadReport": "protgraph_plugins.view.attention",
    "apc": "protgraph_plugins.view.attention",
    "report_heads": "protgraph_plugins.view.attention",
    "symmetrized": "protgraph_plugins.view.attention",
    "write_attention": "protgraph_plugins.view.attention",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
