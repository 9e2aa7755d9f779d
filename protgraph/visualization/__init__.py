"""Pictures of proteins and of what models compute for them: interactive pages, MolViewSpec states, attention maps."""

from protgraph.visualization.attention_heads import HeadReport, report_heads
from protgraph.visualization.attention_report import AttentionReport, write_attention
from protgraph.visualization.label_colors import agreement, label_color
from protgraph.visualization.model_colors import attention_edges, attribution_color, prediction_colors
from protgraph.visualization.molviewspec import write_molviewspec
from protgraph.visualization.page import write_page
from protgraph.visualization.scene import Color, EdgeSet, Scene, color_of, edge_set, make_scene
from protgraph.visualization.view import view
from protgraph.visualization.viewer_scripts import (
    write_chimerax_script,
    write_defattr,
    write_pymol_script,
    write_scene_chimerax,
    write_scene_pymol,
)

__all__ = [
    "AttentionReport",
    "Color",
    "EdgeSet",
    "HeadReport",
    "Scene",
    "agreement",
    "attention_edges",
    "attribution_color",
    "color_of",
    "edge_set",
    "label_color",
    "make_scene",
    "prediction_colors",
    "report_heads",
    "view",
    "write_attention",
    "write_chimerax_script",
    "write_defattr",
    "write_molviewspec",
    "write_page",
    "write_pymol_script",
    "write_scene_chimerax",
    "write_scene_pymol",
]
