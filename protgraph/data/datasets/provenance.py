"""Provenance of a dataset on its card: source repositories, what may be redistributed, scores of other methods."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

__all__ = [
    "KnownLeak",
    "KnownLeakSchema",
    "Provenance",
    "ReferenceScore",
    "ReferenceScoreSchema",
    "SourceRepository",
    "SourceRepositorySchema",
]


@dataclass(frozen=True)
class ReferenceScore:
    """Score of a floor or of a published method.

    Parameters
    ----------
    method, metric : str
    value : float
    split : str
        Split of the card that was scored.
    trained_on : str
        Training data.
    source : str
        Reference, and how the value was obtained.
    confirmed : bool
        True: read in the source or computed; False: from memory.
    """

    method: str
    metric: str
    value: float
    split: str = "test"
    trained_on: str = ""
    source: str = ""
    confirmed: bool = False


@dataclass(frozen=True)
class KnownLeak:
    """Relatives in two splits of the published data.

    Parameters
    ----------
    split, other : str
        Splits of the card.
    related, close : int
        Proteins of ``split`` with a relative in ``other``: by the rule, and at 95 % identity.
    source : str
        Program and rule that found them.
    """

    split: str
    other: str
    related: int
    close: int
    source: str


@dataclass(frozen=True)
class SourceRepository:
    """Repository that files of a dataset are downloaded from.

    Parameters
    ----------
    repository : str
        ``owner/name`` on GitHub.
    commit : str
        40 hexadecimal digits.
    files : str
        Table beside the card with the columns ``path`` (in the repository) and ``sha256``; empty if ``prepare`` does
        not read the repository's own files.
    mirrors : tuple of str
        Addresses to try first or instead, with ``{repository}``, ``{commit}`` and ``{path}``.
    """

    repository: str
    commit: str
    files: str = ""
    mirrors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Provenance:
    """Source of the data of a prepared dataset, and what may be passed on.

    Parameters
    ----------
    redistribution : str
        What may be redistributed.
    weights_note : str
        Terms that models trained on the dataset have to state; empty if there are none.
    train_on : str
        Dataset to train on, where this one has no training split.
    sources : tuple of SourceRepository
    checksums : tuple of (str, str)
        Name and SHA-256 of the files of a local source folder, where they are known.
    known_leaks : tuple of KnownLeak
        Relatives in different splits.
    """

    redistribution: str = ""
    weights_note: str = ""
    train_on: str = ""
    sources: tuple[SourceRepository, ...] = ()
    checksums: tuple[tuple[str, str], ...] = ()
    known_leaks: tuple[KnownLeak, ...] = ()


class ReferenceScoreSchema(BaseModel):
    """Keys of ``[[tasks.NAME.floors]]`` and ``[[tasks.NAME.published]]``."""

    model_config = ConfigDict(extra="forbid", strict=True)
    method: str
    metric: str
    value: float
    split: str = "test"
    trained_on: str = ""
    source: str = ""
    confirmed: bool = False

    def score(self) -> ReferenceScore:
        """Return the score."""
        return ReferenceScore(**self.model_dump())


class KnownLeakSchema(BaseModel):
    """Keys of ``known_leaks``."""

    model_config = ConfigDict(extra="forbid", strict=True)
    split: str
    other: str
    related: int
    close: int
    source: str

    def leak(self) -> KnownLeak:
        """Return the leak."""
        return KnownLeak(**self.model_dump())


class SourceRepositorySchema(BaseModel):
    """Keys of ``[[sources]]``."""

    model_config = ConfigDict(extra="forbid", strict=True)
    repository: str
    commit: str
    files: str = ""
    mirrors: list[str] = []

    def source(self) -> SourceRepository:
        """Return the repository."""
        return SourceRepository(self.repository, self.commit, self.files, tuple(self.mirrors))
