# Written by tools/stubs.py.
from protgraph_plugins.view.attention import (
    AttentionReport as AttentionReport,
    HeadReport as HeadReport,
    apc as apc,
    report_heads as report_heads,
    symmetrized as symmetrized,
    write_attention as write_attention,
)
from protgraph_plugins.view.page import (
    limit_scene as limit_scene,
    molstar_script as molstar_script,
    write_page as write_page,
)
from protgraph_plugins.view.protein_view import view as view
from protgraph_plugins.view.residue_colors import (
    agreement as agreement,
    attention_edges as attention_edges,
    attribution_color as attribution_color,
    label_color as label_color,
    prediction_colors as prediction_colors,
)
from protgraph_plugins.view.scene import (
    Color as Color,
    EdgeSet as EdgeSet,
    ResidueGroup as ResidueGroup,
    Scene as Scene,
    color_of as color_of,
    edge_set as edge_set,
    make_scene as make_scene,
)
from protgraph_plugins.view.viewer_scripts import (
    write_chimerax_script as write_chimerax_script,
    write_molviewspec as write_molviewspec,
    write_pymol_script as write_pymol_script,
    write_scene_chimerax as write_scene_chimerax,
    write_scene_pymol as write_scene_pymol,
)
