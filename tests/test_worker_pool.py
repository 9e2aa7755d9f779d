"""Worker pool: results in order, processes that are killed, errors, and the end of a run at any time."""

from __future__ import annotations

import os
import random
import textwrap
import time
from pathlib import Path

import pytest
import torch

from protgraph.worker_pool import WorkerPool
from protgraph.worker_process import WorkerDied, WorkerProcess, is_portable

FUNCTIONS = """
    import os, signal, time  # not torch, which a process takes seconds to import
    from pathlib import Path

    def double(item):
        return 2 * item

    def later(item):
        time.sleep(0.3 if item == 0 else 0)
        return item

    def first_ends_last(item):
        # 0 waits until the other process has computed 1, 2 and 3
        number, folder = item
        if number:
            (folder / str(number)).touch()
            return number
        end = time.monotonic() + 120  # the other process may start late
        while sum(1 for _ in folder.iterdir()) < 3 and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.3)  # until the last result has been sent
        return number

    def noisy(item):
        print("printed", item)
        return os.getpid()

    def noisy_until_killed(item):
        print("before", item)
        os.kill(os.getpid(), signal.SIGKILL)

    def kill_odd(item):
        if item % 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    def kill_once(path):
        if not Path(path).exists():
            Path(path).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return "second"

    class DiesWhenPickled:
        def __reduce__(self):
            os.kill(os.getpid(), signal.SIGKILL)

    def die_in_answer(item):
        return DiesWhenPickled() if item == 1 else item

    def fail(item):
        raise OSError(28, "no space", "file.txt")

    class Odd(Exception):
        def __reduce__(self):
            raise TypeError("not picklable")

    def fail_oddly(item):
        raise Odd("what happened")

    def tensors(item):
        return {"a": item["a"] * 2, "b": item["b"][::2], "bf": item["bf"], "grad": item["grad"]}

    def large(item):
        return bytes(30_000_000)

    def ignore(item):
        return [signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []), os.environ["OMP_NUM_THREADS"]]
"""


@pytest.fixture
def functions(tmp_path, monkeypatch):
    """Return a module that worker processes can import."""
    (tmp_path / "pool_functions.py").write_text(textwrap.dedent(FUNCTIONS))
    monkeypatch.syspath_prepend(tmp_path)
    import importlib

    module = importlib.import_module("pool_functions")
    return importlib.reload(module)


def values(function, items, *, workers=2, in_order=True, **options):
    return [value for _, value in WorkerPool(function, workers=workers, **options).run(items, in_order=in_order)]


@pytest.mark.slow
def test_results_come_in_order_or_as_they_finish(functions, tmp_path):
    assert values(functions.double, range(20)) == list(range(0, 40, 2))
    for in_order, expected in ((True, [0, 1, 2, 3]), (False, [1, 2, 3, 0])):
        folder = tmp_path / str(in_order)
        folder.mkdir()
        items = [(number, folder) for number in range(4)]
        assert values(functions.first_ends_last, items, in_order=in_order) == expected
    assert values(functions.double, []) == []


def test_items_are_read_as_results_are_taken(functions):
    read = []
    items = (read.append(i) or i for i in range(1000))
    results = WorkerPool(functions.double, workers=2).run(items, in_order=True, ahead=3)
    assert next(results) == (0, 0) and len(read) <= 6
    assert [next(results)[1] for _ in range(10)] == list(range(2, 22, 2)) and len(read) <= 16
    results.close()


@pytest.mark.slow
def test_a_killed_process_loses_nothing_else(functions, tmp_path):
    results = values(functions.kill_odd, range(5))
    assert results[::2] == [0, 2, 4]
    assert all(isinstance(r, WorkerDied) and "SIGKILL" in r.reason for r in results[1::2])
    assert values(functions.kill_once, [str(tmp_path / "flag")]) == ["second"]
    assert values(functions.die_in_answer, range(3)) == [0, WorkerDied("was killed by SIGKILL (out of memory?)"), 2]


def test_exceptions_of_the_function_are_raised(functions):
    with pytest.raises(OSError) as e:
        values(functions.fail, [1])
    assert (e.value.errno, e.value.filename) == (28, "file.txt") and "pool_functions" in e.value.__notes__[0]
    with pytest.raises(RuntimeError) as e:
        values(functions.fail_oddly, [1])
    assert "what happened" in str(e.value)
    with pytest.raises((AttributeError, TypeError)):
        values(functions.double, [lambda: 0])


@pytest.mark.slow
def test_tensors_are_the_same_in_the_other_process(functions):
    item = {
        "a": torch.arange(6.0).reshape(2, 3).T,
        "b": torch.arange(5),
        "bf": torch.ones(2, dtype=torch.bfloat16),
        "grad": torch.ones(2, requires_grad=True),
    }
    [answer] = values(functions.tensors, [item])
    assert torch.equal(answer["a"], 2 * item["a"]) and torch.equal(answer["b"], item["b"][::2])
    assert torch.equal(answer["bf"], item["bf"]) and answer["grad"].requires_grad
    answer["b"] += 1  # memory of its own


def test_output_goes_to_the_log_and_signals_to_the_first_process(functions, tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # with it, no output is ever buffered
    log = tmp_path / "log" / "workers.txt"
    assert len(set(values(functions.noisy, range(3), workers=1, log=log))) == 1
    assert log.read_text().splitlines() == ["printed 0", "printed 1", "printed 2"]
    assert values(functions.ignore, [0]) == [[True, "1"]]


def test_output_before_a_crash_is_in_the_log(functions, tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    log = tmp_path / "workers.txt"
    values(functions.noisy_until_killed, ["a", "b"], workers=1, log=log)
    assert set(log.read_text().splitlines()) == {"before a", "before b"}  # each twice: an item is repeated once


def test_functions_of_a_script_are_not_portable(functions, monkeypatch):
    assert is_portable(functions.double, {"a": torch.ones(2)})
    assert not is_portable(lambda: 0)
    monkeypatch.setattr(functions.double, "__module__", "__main__")
    monkeypatch.setattr("__main__.double", functions.double, raising=False)
    assert not is_portable(functions.double)


def running(pid):
    path = Path(f"/proc/{pid}/cmdline")
    return path.exists() and bool(path.read_bytes())


@pytest.mark.slow
def test_a_run_ends_at_any_time(functions):
    """The process is killed while it starts, works, or writes a large result."""
    choose = random.Random(0)
    for _ in range(6):
        results = WorkerPool(functions.large, workers=2).run(range(100), in_order=True)
        next(results)
        time.sleep(choose.random() * 0.05)
        results.close()
    pool = WorkerPool(functions.noisy, workers=1, log=Path(os.devnull)).run(range(3))
    _, pid = next(pool)
    assert running(pid)
    pool.close()
    assert not running(pid)


def test_time_limit_ends_one_item_only(functions):
    process = WorkerProcess(functions.later)
    try:
        assert process.run(1, time_limit=60) == 1
        died = process.run(0, time_limit=0.05)  # sleeps for 0.3 s
        assert isinstance(died, WorkerDied) and "0.05 s" in died.reason
        assert process.run(2, time_limit=60) == 2
    finally:
        process.close()
    assert process.run(3) == WorkerDied("was stopped")
