"""Tests of how an encoder starts: as PyTorch's own modules do, parameter by parameter, or from N(0, σ²)."""

import numpy as np
import pytest
import torch
from scipy import stats

from auxmod.config import Embedding, Model
from auxmod.learning.initial import initialise
from auxmod.learning.model import Encoder
from auxmod.learning.plain import PlainModel, to_plain

N, INPUTS, OUTPUTS = 5, 40, 50


def make(
    members: int = 1,
    init: str = "default",
    seeds: tuple[int, ...] = (0,),
    embedding: Embedding = "token",
    lift: float = 0.0,
):
    model = Model(embedding=embedding, layers=2, heads=2, width=32, hidden=64)
    encoder = Encoder(model, N, INPUTS, OUTPUTS, members)
    for member, seed in enumerate(seeds):
        initialise(encoder, member, seed, init, lift)
    return encoder


@pytest.mark.parametrize("embedding", ["token", "angular"])
def test_the_default_is_pytorchs_own(embedding: Embedding) -> None:
    """Every parameter against the same parameter of freshly made torch.nn modules."""
    encoder = make(embedding=embedding)
    ours = dict(to_plain(encoder).named_parameters())
    with torch.random.fork_rng():
        torch.manual_seed(0)
        theirs = [dict(PlainModel(encoder.model, N, INPUTS, OUTPUTS).named_parameters()) for _ in range(8)]
    for name, parameter in ours.items():
        mine = parameter.detach().flatten().numpy()
        fresh = np.concatenate([t[name].detach().flatten().numpy() for t in theirs])
        if len(set(fresh.tolist())) == 1:  # a constant
            assert set(mine.tolist()) == set(fresh.tolist()), name
            continue
        assert stats.ks_2samp(mine, fresh).pvalue > 1e-3, name
        if abs(fresh).max() < 1:  # uniform: within the same bounds
            assert abs(mine).max() <= abs(fresh).max() * 1.01, name


def test_sigma_is_the_standard_deviation_of_all_weights() -> None:
    for name, parameter in make(init="0.02").named_parameters():
        values = parameter.detach().flatten().numpy()
        if "norm" in name:
            assert set(values.tolist()) == {1.0 if name.endswith("weight") else 0.0}
        elif name.endswith("bias"):
            assert not values.any()
        else:
            assert stats.kstest(values / 0.02, "norm").pvalue > 1e-3, name


def test_of_linear_layers_alone_is_what_a_function_applied_to_each_of_torchs_own_reaches() -> None:
    def redraw(module: torch.nn.Module) -> None:
        if isinstance(module, torch.nn.Linear | torch.nn.Embedding):
            torch.nn.init.zeros_(module.weight)

    encoder = make(init="linear-0.02")
    theirs = PlainModel(encoder.model, N, INPUTS, OUTPUTS)
    theirs.apply(redraw)
    reached = {name: not parameter.any() for name, parameter in theirs.named_parameters() if name.endswith("weight")}
    default, small = (dict(to_plain(make(init=init)).named_parameters()) for init in ("default", "0.02"))
    compared = 0
    for name, parameter in to_plain(encoder).named_parameters():
        if name in reached and "norm" not in name:
            assert torch.equal(parameter, (small if reached[name] else default)[name]), name
            compared += 1
    assert compared >= 10
    assert torch.equal(encoder.cls, make().cls)


@pytest.mark.parametrize("embedding", ["token", "angular"])
@pytest.mark.parametrize("init", ["default", "0.02"])
def test_the_embedding_may_have_a_sigma_of_its_own(init: str, embedding: Embedding) -> None:
    without = dict(make(init=init, embedding=embedding).named_parameters())
    for name, parameter in make(init=init, embedding=embedding, lift=0.3).named_parameters():
        if not name.startswith("embed."):
            assert torch.equal(parameter, without[name]), name
        elif name.endswith("bias"):
            assert not parameter.any()
        else:
            values = parameter.detach().flatten().numpy()
            assert stats.kstest(values / 0.3, "norm").pvalue > 1e-3, name


def test_a_members_weights_do_not_depend_on_its_company() -> None:
    alone, together = make(seeds=(7,)), make(3, seeds=(1, 7, 7))
    for a, b in zip(alone.parameters(), together.parameters(), strict=True):
        assert torch.equal(a[0], b[1])
        assert torch.equal(a[0], b[2])


def test_a_wider_shared_head_begins_with_the_same_rows() -> None:
    """Token members of different K share a head as wide as the widest needs."""
    model = Model(embedding="token", layers=1, heads=2, width=8, hidden=8)
    narrow, wide = Encoder(model, N, INPUTS, 10), Encoder(model, N, INPUTS, 30)
    initialise(narrow, 0, 0, "default")
    initialise(wide, 0, 0, "default")
    assert torch.equal(narrow.head.weight[0], wide.head.weight[0, :10])
    assert torch.equal(narrow.head.bias[0], wide.head.bias[0, :10])


def test_seeds_and_parameters_differ() -> None:
    encoder = make(2, init="0.5", seeds=(0, 1))
    drawn = [p.flatten(1)[m, :50] for p in encoder.parameters() if p[0].numel() >= 50 and p.std() > 0 for m in (0, 1)]
    assert len(drawn) > 10
    correlations = np.corrcoef(torch.stack(drawn).detach().numpy())
    assert abs(correlations[~np.eye(len(drawn), dtype=bool)]).max() < 0.7


def test_cloned_blocks_are_all_like_the_first() -> None:
    cloned, default = (dict(make(init=init).named_parameters()) for init in ("cloned", "default"))
    for name, parameter in default.items():
        same = torch.equal(cloned[name], parameter)
        assert same or name.startswith("blocks.1"), name
        if name.startswith("blocks.1"):
            assert torch.equal(cloned[name], cloned[name.replace("blocks.1", "blocks.0")]), name
