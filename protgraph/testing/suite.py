"""The checks in their order, the verdict of each, and the two ways to run them: here, and as pytest parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch

from protgraph.errors import OptionError
from protgraph.testing.checks import form, learning, symmetry
from protgraph.testing.subject import Kind, Subject
from protgraph.testing.trial import ConformityError, NotApplicable, Trial

__all__ = ["CHECKS", "Check", "Result", "check"]

Status = Literal["passed", "failed", "expected", "skipped"]


@dataclass(frozen=True)
class Check:
    """One thing that components must hold.

    Parameters
    ----------
    name : str
        As in :class:`protgraph.testing.Conformity.expected_failures` and in test ids.
    function : callable
        Takes a :class:`Trial`; gives the error that it measured, or None; raises :class:`ConformityError`.
    kinds : tuple of str
        Which kinds of component it is for.
    """

    name: str
    function: Callable[[Trial], float | None]
    kinds: tuple[Kind, ...] = ("featurizer", "layer", "head", "model")

    @property
    def claim(self) -> str:
        """What holds where it passes."""
        return (self.function.__doc__ or "").strip().splitlines()[0]


_LEARNERS: tuple[Kind, ...] = ("layer", "head", "model")

#: In this order: what comes later says nothing where what comes before fails.
CHECKS: tuple[Check, ...] = (
    Check("builds", form.builds),
    Check("signature", form.signature),
    Check("reads_writes", form.reads_writes),
    Check("inputs_unchanged", form.inputs_unchanged),
    Check("finite", form.finite),
    Check("non_trivial", form.non_trivial),
    Check("rotation", symmetry.rotation),
    Check("reflection", symmetry.reflection),
    Check("node_order", symmetry.node_order),
    Check("edge_order", symmetry.edge_order),
    Check("batch_equals_singles", symmetry.batch_equals_singles),
    Check("no_leak", symmetry.no_leak),
    Check("every_parameter_learns", learning.every_parameter_learns, _LEARNERS),
    Check("degenerate", learning.degenerate),
    Check("state_dict", learning.state_dict, _LEARNERS),
    Check("seed", learning.seed),
    Check("float32", learning.float32),
    Check("cuda", symmetry.same_on_cuda, _LEARNERS),
)


@dataclass(frozen=True)
class Result:
    """The verdict of one check.

    Parameters
    ----------
    subject, check : str
        "layer gat", "rotation".
    status : {"passed", "failed", "expected", "skipped"}
        "expected" where it failed as the component says it must.
    error : float, optional
        What was measured: a relative error, dimensionless.
    message : str
        Why it failed, or does not apply.
    """

    subject: str
    check: str
    status: Status
    error: float | None = None
    message: str = ""

    @property
    def ok(self) -> bool:
        return self.status != "failed"


def check(subject: Subject, *, device: str = "cpu", dtype: str = "float64") -> Iterator[Result]:
    """Run every check on one component; one that cannot be built is asked nothing else.

    Parameters
    ----------
    subject : Subject
        See :func:`protgraph.testing.subjects`.
    device : str
        Where: "cpu", "cuda".
    dtype : {"float64", "float32"}
        float64 is held to 1e-10, float32 to the component's tolerance.
    """
    trial = Trial(subject, device, floating(dtype))
    for one in CHECKS:
        if subject.kind not in one.kinds:
            continue
        result = verdict(one, trial)
        yield result
        if one.name == "builds" and not result.ok:
            return


def verdict(one: Check, trial: Trial) -> Result:
    """Run one check and weigh what it finds against what the component expects."""
    who, reason = str(trial.subject), expected(one, trial.subject)
    try:
        with trial.naming(one.name):
            error = one.function(trial)
    except NotApplicable as e:
        return Result(who, one.name, "skipped", message=str(e))
    except ConformityError as e:
        return Result(who, one.name, "expected" if reason else "failed", message=reason or str(e))
    if reason and trial.subject.strict:
        return Result(who, one.name, "failed", error, unexpected(one, trial.subject, reason))
    return Result(who, one.name, "passed", error)


def expected(one: Check, subject: Subject) -> str | None:
    """Why the component cannot pass this check, if it says so."""
    try:
        return subject.conformity.expected_failures.get(one.name)
    except Exception:  # noqa: BLE001 -- it cannot be loaded or built, which the first check says
        return None


def unexpected(one: Check, subject: Subject, reason: str) -> str:
    """What is wrong where an expected failure passes."""
    return f"{subject}: {one.name} was expected to fail ({reason}), and passes: take the expectation away"


def floating(name: str) -> torch.dtype:
    """The torch type of a name."""
    if name not in ("float64", "float32"):
        raise OptionError(f"dtype={name!r} is neither 'float64' nor 'float32'")
    return getattr(torch, name)
