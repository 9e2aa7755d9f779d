"""Ctrl-C and SIGTERM while a model is trained: the best epoch so far is kept in the exception."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from protgraph.train.result import FitResult

__all__ = ["TrainingInterrupted", "interruption_with", "signal_of"]


class TrainingInterrupted(KeyboardInterrupt):
    """Training was stopped by Ctrl-C or SIGTERM.

    Parameters
    ----------
    number : signal.Signals
    result : FitResult, optional

    Attributes
    ----------
    signal : signal.Signals
        ``SIGINT`` or ``SIGTERM``.
    result : FitResult or None
        The model of the best epoch so far, without test metrics. None before the first validated epoch, and in all
        processes of a distributed run but the first.
    """

    def __init__(self, number: signal.Signals, result: FitResult | None = None) -> None:
        self.signal, self.result = number, result
        super().__init__(
            f"training interrupted by {number.name} before the first validated epoch"
            if result is None
            else f"training interrupted by {number.name} after epoch {result.epochs}; the model of epoch "
            f"{result.best_epoch} is the attribute 'result'"
        )


@contextmanager
def interruption_with(result: Callable[[signal.Signals], FitResult | None]) -> Iterator[None]:
    """Raise :class:`TrainingInterrupted` with ``result(signal)`` if the block is stopped by Ctrl-C or SIGTERM.

    Lightning 2.6 turns both into SystemExit, which ends the kernel of a notebook and the process with exit code 0 or
    1, and leaves SIGINT ignored.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except TrainingInterrupted:
        raise
    except (KeyboardInterrupt, SystemExit) as e:
        number = signal_of(e)
        if number is None:
            raise
        for number_before, handler in before.items() if is_main else ():
            if handler is not None:  # None: not set from Python
                signal.signal(number_before, handler)
        raise TrainingInterrupted(number, result(number)) from e


def signal_of(e: BaseException | None) -> signal.Signals | None:
    """Return the signal that caused an exception, None for another exception."""
    from lightning.pytorch.utilities.exceptions import SIGTERMException

    if isinstance(e, SIGTERMException):
        return signal.SIGTERM
    if isinstance(e, KeyboardInterrupt):
        return getattr(e, "signal", signal.SIGINT)
    return signal_of(e.__context__) if isinstance(e, SystemExit) else None
