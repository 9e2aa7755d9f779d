"""Signals of a command: SIGTERM ends it like Ctrl-C, and a second signal ends it at once."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Terminated", "exit_code", "raise_on_signals"]

#: Seconds in which further signals count as the first one: ``timeout`` and some queues send it twice.
_GRACE = 1.0


class Terminated(KeyboardInterrupt):
    """SIGTERM was received; batch queues and containers send it to stop a process."""

    signal = signal.SIGTERM


def exit_code(e: KeyboardInterrupt) -> int:
    """Return the exit code of a command that an interruption stopped: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + getattr(e, "signal", signal.SIGINT)


@contextmanager
def raise_on_signals() -> Iterator[None]:
    """Raise :class:`Terminated` on SIGTERM and KeyboardInterrupt on Ctrl-C in the block; end on a second signal.

    A signal is left alone if it is ignored, as by ``nohup`` and in background jobs of scripts, or has another handler.
    Processes that Lightning starts for further devices ignore both signals: the first process ends them.
    """
    default: dict[signal.Signals, Callable[..., object] | signal.Handlers] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
    }
    is_main = threading.current_thread() is threading.main_thread()
    replaced = [number for number in default if is_main and signal.getsignal(number) == default[number]]
    is_worker = os.environ.get("LOCAL_RANK", "0") != "0" and "TORCHELASTIC_RUN_ID" not in os.environ
    handler: Callable[[int, FrameType | None], None] | signal.Handlers = _Handler()
    if is_worker:
        handler = signal.SIG_IGN
    try:
        for number in replaced:
            signal.signal(number, handler)
        yield
    finally:
        for number in replaced:
            signal.signal(number, default[number])


class _Handler:
    """Handler of both signals; the first one raises."""

    def __init__(self) -> None:
        self._first: float | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._first is None:
            self._first = now
            raise Terminated if number == signal.SIGTERM else KeyboardInterrupt
        if now - self._first > _GRACE:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
