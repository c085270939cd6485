"""Tests that each member of the encoder is `torch.nn.TransformerEncoder`: outputs and gradients, with every switch."""

import re
import shutil
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from auxmod.config import Model
from auxmod.learning.initial import initialise
from auxmod.learning.model import Dropout, Encoder
from auxmod.learning.plain import PlainModel, to_plain

N, B, INPUTS, OUTPUTS = 5, 3, 6, 7
SWITCHES = list(product(["pre", "post"], [True, False], ["relu", "gelu"], ["cls", "mean", "max", "flatten"]))


def make(members: int, **switches: Any) -> Encoder:
    """Members with different random weights everywhere, norms and biases too."""
    model = Model(**{"layers": 2, "heads": 2, "width": 8, "hidden": 12} | switches)
    encoder = Encoder(model, N, INPUTS, OUTPUTS, members).double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in encoder.named_parameters():
            around = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            parameter.copy_(around + torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * 0.5)
    return encoder


def inputs(encoder: Encoder) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    if encoder.model.embedding == "token":
        return torch.randint(INPUTS, (encoder.members, B, N), generator=generator)
    return torch.randn(encoder.members, B, N, INPUTS, generator=generator, dtype=torch.float64)


def twin_name(name: str) -> str:
    """The name that `torch.nn` gives to one of our parameters."""
    attention = {"qkv.weight": "self_attn.in_proj_weight", "qkv.bias": "self_attn.in_proj_bias"}
    parts = {"out.": "self_attn.out_proj.", "up.": "linear1.", "down.": "linear2."}
    if name.startswith("norm."):
        return f"encoder.{name}"
    if not name.startswith("blocks."):
        return name
    _, number, rest = name.split(".", 2)
    rest = attention.get(rest, rest)
    for ours, theirs in parts.items():
        if rest.startswith(ours):
            rest = theirs + rest.removeprefix(ours)
    return f"encoder.layers.{number}.{rest}"


def assert_equal_to_the_twin(encoder: Encoder, **forward: Any) -> None:
    x = inputs(encoder)
    generator = torch.Generator().manual_seed(2)
    cotangent = torch.randn(encoder.members, B, OUTPUTS, generator=generator, dtype=torch.float64)
    outputs = encoder(x, torch.float64, **forward)
    outputs.backward(cotangent)
    ours = dict(encoder.named_parameters())
    for member in range(encoder.members):
        plain = to_plain(encoder, member)
        expected = plain(x[member])
        expected.backward(cotangent[member])
        torch.testing.assert_close(outputs[member], expected, rtol=1e-10, atol=1e-12)
        theirs = dict(plain.named_parameters())
        assert {twin_name(name) for name in ours} == set(theirs)
        for name, parameter in ours.items():
            assert parameter.grad is not None
            gradient = theirs[twin_name(name)].grad
            assert gradient is not None
            assert gradient.abs().max() > 0
            torch.testing.assert_close(parameter.grad[member], gradient, rtol=1e-9, atol=1e-11, msg=name)


@pytest.mark.parametrize("embedding", ["token", "angular"])
@pytest.mark.parametrize(("norm", "bias", "activation", "pooling"), SWITCHES)
def test_outputs_and_gradients_are_those_of_torch_nn(
    norm: str, bias: bool, activation: str, pooling: str, embedding: str
) -> None:
    switches = {"norm": norm, "bias": bias, "activation": activation, "pooling": pooling, "embedding": embedding}
    for members, final_norm in ((1, True), (3, False)):
        assert_equal_to_the_twin(make(members, final_norm=final_norm, **switches))


@pytest.mark.parametrize("members", [1, 3])
def test_dropout_at_rate_0_changes_nothing(members: int) -> None:
    """With dropout, attention is written out: it must be the attention of torch.nn too."""
    dropout = Dropout(0.0, torch.arange(members), torch.tensor(3))
    assert_equal_to_the_twin(make(members), dropout=dropout)


def test_the_twin_is_really_torch_nn() -> None:
    plain = to_plain(make(1, pooling="mean"))
    assert type(plain.encoder) is nn.TransformerEncoder
    assert all(type(layer) is nn.TransformerEncoderLayer for layer in plain.encoder.layers)
    assert type(plain.embed) is type(plain.head) is nn.Linear


def test_the_twin_keeps_the_mode_and_in_eval_mode_takes_the_fast_path_alike() -> None:
    encoder = make(1, dropout=0.5).eval()
    plain = to_plain(encoder)
    assert not plain.training
    with torch.no_grad():
        torch.testing.assert_close(plain(inputs(encoder)[0]), encoder(inputs(encoder), torch.float64)[0])


def test_a_plain_model_alone_is_in_training_mode() -> None:
    assert PlainModel(Model(layers=1, width=8, heads=2, hidden=8), N, 4, 4).training


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_the_order_of_terms_does_not_matter(pooling: str) -> None:
    """No positions: the function is symmetric, as the sum is."""
    encoder = make(2, pooling=pooling)
    x = inputs(encoder)
    shuffled = x[:, :, torch.randperm(N, generator=torch.Generator().manual_seed(0))]
    torch.testing.assert_close(encoder(x, torch.float64), encoder(shuffled, torch.float64))


def test_members_do_not_see_one_another() -> None:
    encoder = make(3)
    x = inputs(encoder)
    before = encoder(x, torch.float64)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter[1] = torch.nan
    after = encoder(x, torch.float64)
    assert after[1].isnan().all()
    assert torch.equal(after[[0, 2]], before[[0, 2]])


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.bfloat16, 0.05), (torch.float16, 0.01)])
def test_a_half_precision_trunk_is_close_and_the_rest_is_float32(dtype: torch.dtype, tolerance: float) -> None:
    encoder = Encoder(Model(layers=2, heads=2, width=16, hidden=32), N, INPUTS, OUTPUTS)
    initialise(encoder, 0, 0, "default")
    x = torch.randn(1, B, N, INPUTS, generator=torch.Generator().manual_seed(0))
    exact, rough = encoder(x), encoder(x, dtype)
    assert exact.dtype == rough.dtype == torch.float32
    assert 0 < (exact - rough).abs().max() < tolerance


def test_dropout_keeps_the_mean_and_drops_its_share() -> None:
    x = torch.ones(2, 400, 50)
    y = Dropout(0.3, torch.tensor([1, 2]), torch.tensor(0))(x, 0)
    assert y.unique().tolist() == pytest.approx([0, 1 / 0.7])
    assert float((y == 0).float().mean()) == pytest.approx(0.3, abs=0.01)
    assert float(y.mean()) == pytest.approx(1, abs=0.02)


def test_dropout_is_a_function_of_member_step_and_site() -> None:
    def mask(keys: list[int], step: int, site: int) -> Tensor:
        return Dropout(0.5, torch.tensor(keys), torch.tensor(step))(torch.ones(len(keys), 10, 10), site)

    base = mask([1, 2], 5, 3)
    assert torch.equal(base, mask([1, 2], 5, 3))
    assert torch.equal(base[1], mask([2], 5, 3)[0])
    assert not torch.equal(base[0], base[1])
    assert not torch.equal(base, mask([1, 2], 6, 3))
    assert not torch.equal(base, mask([1, 2], 5, 4))


@pytest.mark.parametrize(("norm", "pooling"), list(product(["pre", "post"], ["cls", "first"])))
def test_what_dropout_drops_does_not_depend_on_what_is_read_out(norm: str, pooling: str) -> None:
    """A mask is a function of the place in the whole: also where the first position alone is read out."""
    encoder = make(2, norm=norm, pooling=pooling)
    h = encoder.embedded(inputs(encoder))
    E, B, n, D = h.shape
    own, dropout = h.reshape(E, B * n, D), Dropout(0.5, torch.tensor([1, 2]), torch.tensor(3))
    whole = own
    for layer, block in enumerate(encoder.blocks):
        whole = block(whole, n, torch.float64, dropout, 4 * layer)
    assert torch.equal(encoder.trunk(own, n, torch.float64, dropout), whole[:, ::n])


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_a_compiler_makes_no_index_of_a_dropout_s_draws() -> None:
    """Triton has no room for an index with the generator's constants: such a step was refused, and ran eagerly."""
    from torch._inductor.utils import run_and_get_code  # takes seconds, which no other test here should wait

    keys, x = torch.tensor([3, -5]), torch.randn(2, 40, 16)

    def dropped(x: torch.Tensor) -> torch.Tensor:
        return Dropout(0.1, keys, torch.tensor(5))(x, 3)

    compiled, sources = run_and_get_code(torch.compile(dropped, dynamic=False), x)
    torch.testing.assert_close(compiled, dropped(x))
    assert [line for code in sources for line in code.splitlines() if re.search(r"\d{11,}L?\)\s*\*\s*x\d", line)] == []
