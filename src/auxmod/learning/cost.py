"""What a run costs, from its configuration alone: parameters, arithmetic, memory, time. Standard library only.

Arithmetic is what the mathematics of a step asks for, whatever an implementation recomputes or leaves out, so
that one count serves every implementation that is compared.

Shapes: B batch, N terms, T positions (N, and one more with `cls` pooling), D width, H hidden, L layers.
"""

from __future__ import annotations

from auxmod.config import RunConfig

_HALF = {"auto", "fp16", "bf16"}


def parameters(config: RunConfig) -> int:
    """Trainable numbers of one model."""
    m = config.model
    inputs, outputs = widths(config)
    D, H, L = m.width, m.hidden, m.layers
    norms = (2 * L + m.final_norm) * D
    biases = L * (5 * D + H) + norms + outputs + (D if m.embedding == "angular" else 0)
    cls = D if m.pooling == "cls" else 0
    return L * _block_weights(config) + inputs * D + _head_weights(config) + norms + cls + m.bias * biases


def step_flops(config: RunConfig) -> int:
    """Floating-point operations of one training step of one model; a multiply-add is two.

    A matrix of P weights costs 2·P a row forward and 4·P backward (for its input, and for itself):

    - blocks, each position: 6 · L·(4·D² + 2·D·H) · B·T
    - attention, QKᵀ and its product with V: 12 · T²·D · L·B
    - where only the first position is read out, the last block has but keys and values, 6 · 2·D² · B·T, of the others
    - angular embedding, whose input needs no gradient: 4 · inputs·D · B·N (a token's look-up is free)
    - read-out, each sample: 6 · D·outputs · B
    - Muon, each matrix of the blocks with sides S ≤ W: 4 · S²·W + 26 · S³ (`learning/muon.py`)

    Element-wise work (norms, activations, AdamW) is left out: it costs bytes, not arithmetic.
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
    """Floating-point operations of a run's training."""
    return config.training.steps * step_flops(config)


def _muon_flops(D: int, H: int) -> int:
    """A block's: queries, keys, values and output, then the two matrices of the hidden layer."""
    short, long = sorted((D, H))
    return 4 * (4 + 26) * D**3 + 2 * (4 * short**2 * long + 26 * short**3)


def member_bytes(config: RunConfig, precision: str | None = None) -> int:
    """An estimate of the memory that training one member of an ensemble takes.

    ``precision`` is what the run's own came to on its device; an `auto` left open counts as fp16, as on a GPU.
    """
    half = (precision or config.training.precision) in _HALF
    # master, gradient as made and as gathered, two moments; and, while a step is captured, a copy of the state
    weights = parameters(config) * (4 * 5 + 2 * half + 4 * 3)
    if config.training.optimiser == "muon":  # the aim and the step
        weights += 2 * config.model.layers * _block_weights(config) * (2 if half else 4)
    return weights + data_bytes(config) + activation_bytes(config, 2 if half else 4)


def data_bytes(config: RunConfig) -> int:
    """What it trains on: inputs, sums, and their order."""
    return config.training.samples * (4 * config.problem.n + 8 + 8)


def activation_bytes(config: RunConfig, size: int) -> int:
    """What a forward pass keeps for the backward one, and that one's widest moment.

    ``size`` is the bytes of a number in the trunk; the residual stream, embedding and read-out are float32.
    """
    m, B, T = config.model, config.training.batch, _positions(config)
    D, H = m.width, m.hidden
    inputs, outputs = widths(config)
    stream = 4 * 2 * D  # what each of the two norms reads
    inside = size * (6 * D + (1 + (m.activation == "gelu")) * H)  # norms' outputs, q, k, v, mixture, hidden layer
    if m.dropout:  # attention is then not fused: its weights; and every mask
        inside += 4 * size * m.heads * T + size * (H + 2 * D)
    backward = size * (2 * H + 4 * D) + 4 * D
    ends = 4 * B * (T * inputs * (m.embedding == "angular") + 3 * outputs)
    if not _ends_early(config) or m.norm == "post":  # which the fused trunk computes for all
        return B * T * (m.layers * (stream + inside) + backward) + ends
    last = T * (stream // 2 + size * 3 * D) + inside  # of most positions the last block keeps a norm, keys and values
    return B * (T * ((m.layers - 1) * (stream + inside) + backward) + last) + ends


def widths(config: RunConfig) -> tuple[int, int]:
    """Inputs (tokens or coordinates) and outputs (classes or coordinates) of a model."""
    q, points = config.problem.q, 2 * config.method.rungs
    inputs = q if config.model.embedding == "token" else points
    return inputs, points if config.model.angles else max(config.method.moduli) * q


def _ends_early(config: RunConfig) -> bool:
    """Whether the last block is computed for one position alone."""
    return config.model.reads_first and not config.model.dropout


def _positions(config: RunConfig) -> int:
    return config.problem.n + (config.model.pooling == "cls")


def _block_weights(config: RunConfig) -> int:
    D, H = config.model.width, config.model.hidden
    return 4 * D**2 + 2 * D * H


def _head_weights(config: RunConfig) -> int:
    rows = config.problem.n if config.model.pooling == "flatten" else 1
    return rows * config.model.width * widths(config)[1]
