"""What a run costs, from its configuration alone: parameters, arithmetic, memory. Imports only `config`.

Arithmetic counts the operations that the mathematics of a step needs, whatever an implementation recomputes or skips.
So one count serves all implementations that are compared.

Shapes: B batch, N terms, T positions (N, and one more with `cls` pooling), D width, H hidden, L layers.
"""

from __future__ import annotations

from auxmod.config import RunConfig

_HALF = {"auto", "fp16", "bf16"}


def parameters(config: RunConfig) -> int:
    """The number of trainable parameters of one model."""
    m = config.model
    inputs, outputs = widths(config)
    D, H, L = m.width, m.hidden, m.layers
    norms = (2 * L + m.final_norm) * D
    biases = L * (5 * D + H) + norms + outputs + (D if m.embedding == "angular" else 0)
    cls = D if m.pooling == "cls" else 0
    return L * _block_weights(config) + inputs * D + _head_weights(config) + norms + cls + m.bias * biases


def step_flops(config: RunConfig) -> int:
    """Floating-point operations of one training step of one model; a multiply-add is two.

    A matrix of P weights costs 2·P per row forward and 4·P backward (the gradients of its input and of itself):

    - blocks, each position: 6 · L·(4·D² + 2·D·H) · B·T
    - attention, QKᵀ and its product with V: 12 · T²·D · L·B
    - if only the first position is read out, without dropout: in the last block the others need only keys and values,
      6 · 2·D² per position
    - angular embedding, whose input needs no gradient: 4 · inputs·D · B·N (a token's look-up is free)
    - read-out, each sample: 6 · D·outputs · B (with `flatten` pooling, N·D in place of D)
    - Muon, each matrix of the blocks with sides S ≤ W: 4 · S²·W + 26 · S³ (`learning/muon.py`)

    Element-wise work (norms, activations, AdamW) is not counted: its cost is memory traffic, not arithmetic.
    """
    m, n, B = config.model, config.problem.n, config.training.batch
    T = _positions(config)
    whole, D = m.layers - _ends_early(config), m.width
    blocks, attention = 6 * whole * _block_weights(config) * B * T, 12 * T**2 * D * whole * B
    if _ends_early(config):
        blocks += 6 * B * (2 * D**2 * T + _block_weights(config) - 2 * D**2)
        attention += 12 * T * D * B
    embedding = 4 * widths(config)[0] * m.width * B * n if m.embedding == "angular" else 0
    update = m.layers * _muon_flops(m.width, m.hidden) if config.training.optimiser == "muon" else 0
    return blocks + attention + embedding + 6 * _head_weights(config) * B + update


def work(config: RunConfig) -> int:
    """Floating-point operations of all of a run's training steps."""
    return config.training.steps * step_flops(config)


def _muon_flops(D: int, H: int) -> int:
    """Muon's operations for one block: queries, keys, values and output, then the two matrices of the hidden layer."""
    short, long = sorted((D, H))
    return 4 * (4 + 26) * D**3 + 2 * (4 * short**2 * long + 26 * short**3)


def member_bytes(config: RunConfig, precision: str | None = None) -> int:
    """Estimate the memory, in bytes, for training one member of an ensemble.

    ``precision`` is the run's precision as resolved on its device; without it, `auto` counts as fp16, as on a GPU.
    """
    half = (precision or config.training.precision) in _HALF
    # master weights, gradients as computed and as gathered, two moments; a half-precision copy of the weights; and,
    # while a step is captured, a copy of the state
    weights = parameters(config) * (4 * 5 + 2 * half + 4 * 3)
    if config.training.optimiser == "muon":  # the look-ahead gradient and the step
        weights += 2 * config.model.layers * _block_weights(config) * (2 if half else 4)
    return weights + data_bytes(config) + activation_bytes(config, 2 if half else 4)


def data_bytes(config: RunConfig) -> int:
    """Bytes of a run's training data: inputs, sums, and their order."""
    return config.training.samples * (4 * config.problem.n + 8 + 8)


def activation_bytes(config: RunConfig, size: int) -> int:
    """Bytes that the forward pass keeps for the backward pass, plus that pass's own peak.

    ``size`` is the bytes per number in the trunk; the residual stream, embedding and read-out are float32.
    """
    m, B, T = config.model, config.training.batch, _positions(config)
    D, H = m.width, m.hidden
    inputs, outputs = widths(config)
    stream = 4 * 2 * D  # the inputs of the two norms
    inside = size * (6 * D + (1 + (m.activation == "gelu")) * H)  # norms' outputs, q, k, v, mixture, hidden layer
    if m.dropout:  # the plain trunk then keeps the attention weights and all masks
        inside += 4 * size * m.heads * T + size * (H + 2 * D)
    backward = size * (2 * H + 4 * D) + 4 * D
    ends = 4 * B * (T * inputs * (m.embedding == "angular") + 3 * outputs)
    if not _ends_early(config) or m.norm == "post":  # post: the fused trunk computes all positions
        return B * T * (m.layers * (stream + inside) + backward) + ends
    last = T * (stream // 2 + size * 3 * D) + inside  # all positions: a norm, keys, values; one: everything
    return B * (T * ((m.layers - 1) * (stream + inside) + backward) + last) + ends


def widths(config: RunConfig) -> tuple[int, int]:
    """The numbers of a model's inputs (tokens, or coordinates per term) and outputs (classes or coordinates)."""
    q, points = config.problem.q, 2 * config.method.rungs
    inputs = q if config.model.embedding == "token" else points
    return inputs, points if config.model.angles else max(config.method.moduli) * q


def _ends_early(config: RunConfig) -> bool:
    """Whether the last block is computed only for the first position."""
    return config.model.reads_first and not config.model.dropout


def _positions(config: RunConfig) -> int:
    return config.problem.n + (config.model.pooling == "cls")


def _block_weights(config: RunConfig) -> int:
    D, H = config.model.width, config.model.hidden
    return 4 * D**2 + 2 * D * H


def _head_weights(config: RunConfig) -> int:
    rows = config.problem.n if config.model.pooling == "flatten" else 1
    return rows * config.model.width * widths(config)[1]
