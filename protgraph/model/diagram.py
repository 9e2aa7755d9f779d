"""Diagrams of model specifications as Mermaid text, which GitHub, MkDocs and notebooks draw."""

from __future__ import annotations

from protgraph.model.spec import ModelSpec

__all__ = ["mermaid_text"]

_BOXES = {"structure": "[/{}/]", "feature": "({})", "layer": "[{}]", "head": "[[{}]]"}


def mermaid_text(spec: ModelSpec) -> str:
    """Return the components of a model as a Mermaid flowchart; arrows are labeled with the fields that they carry.

    Layers without effect on the head are dashed.

    Examples
    --------
    >>> from protgraph import models
    >>> print(mermaid_text(models.get("majority")).splitlines()[0])
    flowchart TD
    """
    dag = spec.dag()
    lines = ["flowchart TD"]
    numbers = {}
    for number, (component, data) in enumerate(dag.nodes(data=True)):
        numbers[component] = f"n{number}"
        lines.append(f"    n{number}{_BOXES[data['kind']].format(data['name'])}")
    for source, target, data in dag.edges(data=True):
        fields = ", ".join(data["fields"])
        lines.append(f"    {numbers[source]} -->|{fields}| {numbers[target]}")
    for layer in spec.dead_layers():
        component = layer.partition(" ")[0]
        lines.append(f"    style {numbers[component]} stroke-dasharray: 4")
    return "\n".join(lines)
