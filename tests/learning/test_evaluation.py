"""Tests of measuring a model: every model gets the same questions, whatever the chunks."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from auxmod.config import Model
from auxmod.learning import evaluation
from auxmod.learning.evaluation import chunks, evaluate, rows_at_once
from auxmod.learning.model import Encoder
from auxmod.learning.objective import Objective
from auxmod.problem import labels, sampling
from tiny import tiny

CPU = torch.device("cpu")
CONFIGS = [tiny(q=7, k=2), tiny(q=31, k=3), tiny(q=7, k=4)]


def perfect(x: Tensor) -> Tensor:
    """Outputs whose first pair is the right answer's point, for every member."""
    q = torch.tensor([c.problem.q for c in CONFIGS])[:, None]
    point = labels.points(labels.residues(labels.sums(x), q), q)
    return torch.cat((point, torch.zeros_like(point)), -1)


@given(st.integers(0, 500), st.integers(1, 60))
def test_chunks_cover_everything_once(total: int, size: int) -> None:
    covered = [i for start, count in chunks(total, size) for i in range(start, start + count)]
    assert covered == list(range(total))
    assert all(0 < count <= size for _, count in chunks(total, size))


def test_a_perfect_model_scores_1_and_one_that_is_off_by_one_scores_0() -> None:
    objective = Objective.of(CONFIGS, CPU)
    for report in evaluate(perfect, objective, 100, at_once=33):
        assert report["match"] == 1
        assert report["samples"] == 100
        assert sum(row["samples"] for row in report["by_wraps"]) == 100
        assert sum(row["correct"] for row in report["by_zeros"]) == 100

    def off_by_one(x: Tensor) -> Tensor:
        q = torch.tensor([c.problem.q for c in CONFIGS])[:, None]
        point = labels.points(labels.residues(labels.sums(x) + 1, q), q)
        return torch.cat((point, point), -1)

    for report, config in zip(evaluate(off_by_one, objective, 100, at_once=33), CONFIGS, strict=True):
        assert report["match"] == 0
        assert report["tau"]["0.1"] == (1 if config.problem.q == 31 else 0)


def test_the_questions_do_not_depend_on_chunks_or_company() -> None:
    seen: dict[int, list[Tensor]] = {50: [], 7: []}
    for size, batches in seen.items():

        def record(x: Tensor, batches: list[Tensor] = batches) -> Tensor:
            batches.append(x)
            return perfect(x)

        evaluate(record, Objective.of(CONFIGS, CPU), 50, at_once=size)
    whole = torch.cat(seen[50], 1)
    assert torch.equal(torch.cat(seen[7], 1), whole)
    assert torch.equal(whole[0], whole[2])
    expected = sampling.uniform(sampling.TEST_SEED, "test", 0, 50, 4, 31, CPU)
    assert torch.equal(whole[1], expected)


@pytest.mark.parametrize("fill", ["zero", "nonzero"])
def test_sparse_inputs_have_zeros(fill: str) -> None:
    report = evaluate(perfect, Objective.of(CONFIGS, CPU), 400, at_once=100, distribution="sparse", fill=fill)[1]
    zeros = {row["bucket"]: row["samples"] for row in report["by_zeros"]}
    assert set(zeros) >= {0, 1, 2, 3}
    assert (4 in zeros) <= (fill == "zero")


def at_once(model: Model, n: int, outputs: int, members: int = 1, device: torch.device = CPU) -> int:
    with torch.device("meta"):
        return rows_at_once(Encoder(model, n, 4, outputs, members), device)


def test_chunks_fit_the_device() -> None:
    small, large = Model(width=64, hidden=64), Model()
    numbers = (large.hidden + 12 * large.width) * 129  # of a row, in a block at its peak
    assert 2**23 < at_once(large, 128, 10) * numbers <= 2**24
    assert at_once(large, 1, 10**9) == 1
    assert at_once(small, 4, 4, 2) == at_once(small, 4, 4) // 2 > 1000


def test_chunks_fit_what_is_free_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    wide, gpu = Model(width=256, hidden=128), torch.device("cuda")
    for free in (2**37, 2**34, 2**20):
        monkeypatch.setattr(evaluation, "free_bytes", lambda _, free=free: free)
        rows = at_once(wide, 16, 4, device=gpu) * 17
        kept = rows * (24 * 256 + 2 * 128)  # the bytes that the trunk keeps of a row
        assert max(free / 64, 2**24) < kept < max(free / 4, 2**28)


def test_a_chunk_that_does_not_fit_is_halved() -> None:
    sizes = []

    def crowded(x: torch.Tensor) -> torch.Tensor:
        sizes.append(x.shape[1])
        if x.shape[1] > 30:
            raise torch.OutOfMemoryError("full")
        return perfect(x)

    objective = Objective.of(CONFIGS, CPU)
    assert evaluate(crowded, objective, 100, at_once=1000) == evaluate(perfect, objective, 100, at_once=1000)
    assert sizes == [100, 50, 25, 25, 25, 25]
    with pytest.raises(torch.OutOfMemoryError):
        evaluate(lambda x: crowded(x.repeat(1, 31, 1)), objective, 2, at_once=2)
