"""Initial weights of an encoder. A member's weights depend only on its settings, its seed and the parameters' names.

`cloned` is `default` with every block equal to the first, since `torch.nn.TransformerEncoder` copies its layer.
`linear-σ` applies σ only to linear layers and embeddings, like a function applied to every `nn.Linear` and
`nn.Embedding`: `torch.nn.MultiheadAttention` keeps the weights of `qkv` in neither. A `lift` above 0 is the σ of the
embedding, in place of init's.

| parameter                | init = default (PyTorch's own)           | init = σ  | init = linear-σ |
|--------------------------|------------------------------------------|-----------|-----------------|
| embedding table          | N(0, 1)                                  | N(0, σ²)  | N(0, σ²)        |
| `cls`                    | N(0, 1)                                  | N(0, σ²)  | as default      |
| attention in (`qkv`)     | Xavier uniform, ±√(6 / (inputs+outputs)) | N(0, σ²)  | as default      |
| every other weight       | Kaiming uniform, ±1/√inputs              | N(0, σ²)  | N(0, σ²)        |
| biases of attention      | 0                                        | 0         | 0               |
| other biases             | uniform, ±1/√inputs                      | 0         | 0               |
| norms                    | weight 1, bias 0                         | the same  | the same        |
"""

from __future__ import annotations

import math
import re

import torch
from torch import Tensor, nn

from auxmod.checked import OF_LINEAR, sigma_of
from auxmod.learning.model import Encoder, Linear
from auxmod.problem import rng


@torch.no_grad()
def initialise(encoder: Encoder, member: int, seed: int, init: str, lift: float = 0.0) -> None:
    """Fill one member's parameters, in place."""
    sigma = sigma_of(init)
    for path, module in encoder.named_modules():
        for name, parameter in module.named_parameters(recurse=False):
            full = f"{path}.{name}".lstrip(".")
            named = re.sub(r"^blocks\.\d+", "blocks.0", full) if init == "cloned" else full
            own = lift or sigma if path == "embed" else sigma
            if init.startswith(OF_LINEAR) and (name == "cls" or path.endswith(".qkv")):
                own = None
            values = _initial(module, full, parameter[member], rng.key(seed, "init", named), own)
            parameter[member].copy_(values)


def _initial(module: nn.Module, name: str, like: Tensor, key: int, sigma: float | None) -> Tensor:
    path, _, kind = name.rpartition(".")
    if path.rpartition(".")[2].startswith("norm"):
        return torch.ones_like(like) if kind == "weight" else torch.zeros_like(like)
    counter = torch.arange(like.numel(), device=like.device).view_as(like)
    if not isinstance(module, Linear):  # the embedding table and the cls token
        return rng.normals(key, counter) * (1.0 if sigma is None else sigma)
    if sigma is not None:
        return rng.normals(key, counter) * sigma if kind == "weight" else torch.zeros_like(like)
    outputs, inputs = module.weight.shape[1:]
    attention_in = path.endswith(".qkv")
    if kind == "bias" and (attention_in or path.endswith(".out")):
        return torch.zeros_like(like)
    bound = math.sqrt(6 / (inputs + outputs)) if attention_in else 1 / math.sqrt(inputs)
    return (2 * rng.uniforms(key, counter) - 1) * bound
