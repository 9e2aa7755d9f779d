"""Pictures of proteins and of what models compute for them: interactive pages, MolViewSpec states, attention maps."""

from protgraph.view.attention_heads import HeadReport, report_heads
from protgraph.view.attention_report import AttentionReport, write_attention
from protgraph.view.color_scripts import write_chimerax_script, write_defattr, write_pymol_script
from protgraph.view.model_colors import attention_edges, prediction_colors
from protgraph.view.molviewspec import write_molviewspec
from protgraph.view.page import write_page
from protgraph.view.scene import Color, EdgeSet, Scene, color_of, edge_set, make_scene
from protgraph.view.show import show

__all__ = [
    "AttentionReport",
    "Color",
    "EdgeSet",
    "HeadReport",
    "Scene",
    "attention_edges",
    "color_of",
    "edge_set",
    "make_scene",
    "prediction_colors",
    "report_heads",
    "show",
    "write_attention",
    "write_chimerax_script",
    "write_defattr",
    "write_molviewspec",
    "write_page",
    "write_pymol_script",
]
