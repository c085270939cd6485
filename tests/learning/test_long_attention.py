"""Tests of attention over packed rows, against its definition."""

import pytest
import torch

from auxmod.learning import long_attention

E, SAMPLES, N, HEADS, WIDTH = 2, 3, 5, 2, 4


@pytest.mark.parametrize("bias", [True, False])
def test_attention_and_its_gradient_are_the_definition_s(bias: bool) -> None:
    D, R = HEADS * WIDTH, SAMPLES * N
    make = torch.Generator().manual_seed(0)
    qkv = torch.randn(E, R, 3 * D, dtype=torch.float64, generator=make).requires_grad_()
    shift = torch.randn(E, 3 * D, dtype=torch.float64, generator=make).requires_grad_() if bias else None
    d_out = torch.randn(E, R, D, dtype=torch.float64, generator=make)

    whole = qkv if shift is None else qkv + shift[:, None]
    out = torch.zeros_like(d_out)
    for e in range(E):
        for sample in range(SAMPLES):
            rows = slice(sample * N, (sample + 1) * N)
            for head in range(HEADS):
                q, k, v = (whole[e, rows, part * D + head * WIDTH :][:, :WIDTH] for part in range(3))
                out[e, rows, head * WIDTH : (head + 1) * WIDTH] = torch.softmax(q @ k.T / WIDTH**0.5, -1) @ v
    expected = torch.autograd.grad(out, [qkv] if shift is None else [qkv, shift], d_out)

    plain = None if shift is None else shift.detach()
    torch.testing.assert_close(long_attention.attend(qkv.detach(), plain, N, HEADS), out.detach())
    sums = torch.full((E, 4, 3 * D), torch.nan)
    d_qkv = long_attention.attend_backward(qkv.detach(), plain, d_out, sums, N, HEADS)
    torch.testing.assert_close(d_qkv, expected[0])
    if shift is not None:
        torch.testing.assert_close(sums.sum(1), expected[1].float())


def test_one_query_a_sample_is_the_first_of_all() -> None:
    D = HEADS * WIDTH
    make = torch.Generator().manual_seed(1)
    qkv = torch.randn(E, SAMPLES * N, 3 * D, dtype=torch.float64, generator=make)
    d_out = torch.randn(E, SAMPLES, D, dtype=torch.float64, generator=make)
    q, kv = qkv[:, ::N, :D].contiguous(), qkv[:, :, D:].contiguous()
    torch.testing.assert_close(
        long_attention.attend_first(q, kv, N, HEADS), long_attention.attend(qkv, None, N, HEADS)[:, ::N]
    )
    everywhere = torch.zeros(E, SAMPLES * N, D, dtype=torch.float64)
    everywhere[:, ::N] = d_out
    d_qkv = long_attention.attend_backward(qkv, None, everywhere, torch.zeros(E, 1, 3 * D), N, HEADS)
    dq, dkv = long_attention.attend_first_backward(q, kv, d_out, N, HEADS)
    torch.testing.assert_close(dq, d_qkv[:, ::N, :D])
    torch.testing.assert_close(dkv, d_qkv[:, :, D:])


def test_more_samples_than_a_call_takes_are_mixed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = torch.randn(3, 7, HEADS, N, WIDTH, dtype=torch.float64)
    whole = long_attention.mix(q, k, v)
    sizes, attention = [], torch.nn.functional.scaled_dot_product_attention

    def spy(*parts: torch.Tensor) -> torch.Tensor:
        sizes.append(len(parts[0]))
        return attention(*parts)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", spy)
    monkeypatch.setattr(long_attention, "AT_ONCE", 3)
    torch.testing.assert_close(long_attention.mix(q, k, v), whole)
    assert sizes == [3, 3, 1]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_takes_more_samples_than_a_grid_holds() -> None:
    q, k, v = (torch.randn(70_000, 1, n, 16, device="cuda") for n in (1, 9, 9))
    exact = torch.softmax(q @ k.mT / 4, -1) @ v
    torch.testing.assert_close(long_attention.mix(q, k, v), exact, rtol=1e-3, atol=1e-3)
