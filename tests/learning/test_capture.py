"""Tests of capturing a step where that is impossible or fails; test_fused.py tests captures on a GPU."""

import re
from pathlib import Path

import pytest
import torch

from auxmod.learning import capture, memory
from auxmod.learning.engine import Ensemble
from auxmod.settings import build

CUDA = torch.device("cuda")


def counting_step(state: torch.Tensor):
    def step() -> None:
        state.add_(1)

    return step


def test_on_a_cpu_the_step_and_the_functions_are_left_as_they_are():
    state = torch.zeros(())
    step = counting_step(state)
    assert capture.captured(step, [state], torch.device("cpu")) is step
    assert capture.compiled(step, torch.device("cpu")) is step
    assert state == 0


def test_a_capture_that_fails_warns_in_one_line_and_trains_eagerly_from_where_it_stood(monkeypatch):
    state = torch.full((), 5.0)
    step = counting_step(state)

    def broken(run, device):
        run()  # the warm-up has changed the state by the time the capture fails
        raise RuntimeError("operation not permitted when stream is capturing\nand a long tail")

    monkeypatch.setattr(capture, "_graph", broken)
    with pytest.warns(UserWarning, match="could not be captured .*stream is capturing.*eagerly") as caught:
        replay = capture.captured(step, [state], CUDA)
    assert len(caught) == 1
    assert "\n" not in str(caught[0].message)
    assert state == 5
    replay()
    assert state == 6


def test_a_plain_step_is_captured_where_the_compiled_one_cannot_be(monkeypatch):
    """The error of a compiler's worker says first that it failed, and last why; the warning has both."""
    state = torch.full((), 5.0)
    compiled, plain = counting_step(state), counting_step(state)

    def graph(run, device):
        run()
        if run is compiled:
            raise RuntimeError("An exception occurred in a subprocess:\n\nTraceback\nTypeError: no such type\n")
        return lambda: state.add_(10)

    monkeypatch.setattr(capture, "_graph", graph)
    with pytest.warns(UserWarning, match="in a subprocess: … TypeError: no such type\\); a plain one is") as caught:
        replay = capture.captured(compiled, [state], CUDA, plain)
    assert len(caught) == 1
    assert state == 5
    replay()
    assert state == 15


def test_running_out_of_memory_is_not_hidden(monkeypatch):
    def full(run, device):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(capture, "_graph", full)
    with pytest.raises(torch.cuda.OutOfMemoryError):
        capture.captured(lambda: None, [], CUDA)


def test_a_compiler_that_fails_does_not_stop_training(monkeypatch):
    """The eager step has nothing compiled in it, so what broke the capture cannot break it."""

    def broken(*_):
        raise RuntimeError("no working compiler")

    monkeypatch.setattr(capture, "_graph", lambda step, device: step())
    model = Ensemble([build(n=4, q=7, width=16, hidden=32, heads=2, layers=1, samples=500)], torch.device("cpu"))
    model._draw_order(0)
    model._fast_begin = model._fast_end = model._fast_decide = broken
    model._by_hand, model.memory.one_pass = broken, True  # there are no kernels here for either
    with pytest.warns(UserWarning, match="no working compiler"):
        replay = capture.captured(model.step, model._changing(), CUDA, model.eager_step)
    replay()
    assert model.step_number == 1
    assert model.dead() == [None]


def test_no_other_file_of_learning_knows_of_graphs_or_of_the_compiler():
    sources = Path(capture.__file__).parent.glob("*.py")
    knowing = [path.name for path in sources if re.search(r"torch\.compile|cuda\.(graph|CUDAGraph)", path.read_text())]
    assert knowing == ["capture.py"]


def test_what_was_compiled_is_given_back_with_an_ensembles_memory(monkeypatch):
    calls = []
    monkeypatch.setattr(torch.compiler, "reset", lambda: calls.append("reset"))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: calls.append("empty_cache"))
    memory.clean_up(torch.device("cpu"))
    assert calls == []
    memory.clean_up(CUDA)
    assert calls == ["reset", "empty_cache"]
