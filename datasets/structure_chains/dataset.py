"""Dataset ``structure_chains``: structures of other datasets, to train encoders without labels."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from protgraph_plugins.published import read_tsv

from protgraph import registry
from protgraph.data.datasets import Dataset, Example, Labels, load_card
from protgraph.errors import DatasetError

__all__ = ["SOURCES", "StructureChains", "source_examples"]
ENTRY_POINTS = {"protgraph.datasets": {"structure_chains": "StructureChains"}}

FOLDER = Path(__file__).resolve().parent
#: Dataset whose proteins are used → the task that lists them.
SOURCES = {
    "ligysis": "inverse_folding",
    "pdb_core": "inverse_folding",
    "dna_site": "dna_site",
    "sugar_site": "sugar_site",
    "ligand_site_dsdp": "ligand_site",
    "db55_interface": "interface",
}


class StructureChains(Dataset):
    """Structures of the training splits of six datasets, for tasks that need no labels.

    The table ``chains.tsv.gz`` has the protein, its split and the dataset that reads it. It is written by
    ``python -m protgraph_datasets.structure_chains.choose``. Proteins with a homolog in a validation or test split of
    any dataset are not in it; ``left_out.tsv`` counts them. The six datasets have to be prepared.
    """

    def __init__(self) -> None:
        self.card = load_card(FOLDER / "dataset.toml")

    @property
    def is_prepared(self) -> bool:
        """True if all six datasets are prepared."""
        return not self._not_prepared

    @property
    def place(self) -> str:
        """That the files are those of other datasets, or which of these are not prepared."""
        if self._not_prepared:
            return f"not prepared: {', '.join(self._not_prepared)}"
        return "files of other datasets"

    def examples(self, task: str, split: str | None = None) -> list[Example]:
        """Return the proteins, of all splits or of one; they are the same for every task."""
        self._task(task)
        return [example for example in self._examples if split in (None, example.split)]

    def labels(self, task: str, example: Example) -> Labels | None:
        """Return None: all tasks compute their labels."""
        self._task(task)

    def links(self, example: Example) -> frozenset[str]:
        """Return the links of a protein in the dataset that it comes from."""
        source, original = self._originals[example.id]
        return frozenset(f"{source} {link}" for link in registry.datasets.create(source).links(original))

    @cached_property
    def _not_prepared(self) -> list[str]:
        return [name for name in SOURCES if not registry.datasets.create(name).is_prepared]

    @cached_property
    def _originals(self) -> dict[str, tuple[str, Example]]:
        """Example id → dataset and example that it comes from."""
        if self._not_prepared:
            commands = "".join(f"\n  protgraph data prepare {name} --download" for name in self._not_prepared)
            raise DatasetError(f"dataset {self.name!r} reads the files of others. Prepare them once:{commands}")
        originals = {}
        for source in SOURCES:
            for example in source_examples(source):
                originals[f"{source}_{example.id}"] = (source, example)
        return originals

    @cached_property
    def _examples(self) -> list[Example]:
        originals, examples = self._originals, []
        for row in read_tsv(FOLDER / "chains.tsv.gz"):
            name = f"{row['dataset']}_{row['id']}"
            _, original = originals[name]
            examples.append(Example(name, original.path, original.chains, row["split"]))
        return examples


def source_examples(name: str) -> list[Example]:
    """Return the examples of all splits of one of :data:`SOURCES`."""
    return registry.datasets.create(name).examples(SOURCES[name])
