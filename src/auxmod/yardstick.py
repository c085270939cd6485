"""The training one would write by hand in plain PyTorch, timed beside ours. Only `bench` may import this file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from auxmod.config import RunConfig
from auxmod.learning.engine import make_encoder
from auxmod.learning.plain import PlainModel
from auxmod.learning.precision import products
from auxmod.problem import sampling

Work = Callable[[], object]


def plain_works(config: RunConfig, device: torch.device) -> dict[str, Work]:
    """A training step of plain PyTorch in each form that the device has; none unless the embedding is angular."""
    forms = {"eager": False, "compiled": True} if device.type == "cuda" else {"eager": False}
    forms = forms if config.model.embedding == "angular" else {}
    return {name: partial(next, plain_training(config, device, fast)) for name, fast in forms.items()}


def plain_training(config: RunConfig, device: torch.device, fast: bool) -> Iterator[None]:
    """Train one model in plain PyTorch, a step at each `next`: in fp32, or compiled with fp16 autocast if ``fast``."""
    training, encoder = config.training, make_encoder([config])
    data = sampling.training(config, torch.device("cpu")).long()
    loader = DataLoader(TensorDataset(data, data.sum(1)), training.batch, shuffle=True, drop_last=True)
    model = PlainModel(config.model, config.problem.n, encoder.inputs, encoder.outputs).to(device)
    forward = torch.compile(model) if fast else model
    optimiser = torch.optim.AdamW(model.parameters(), training.lr, weight_decay=training.weight_decay)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: max(0.0, 1 - step / training.steps))
    scaler = torch.amp.GradScaler(device.type, init_scale=2.0**12, enabled=fast)
    moduli = torch.tensor(config.method.moduli, device=device) * config.problem.q
    weights = torch.tensor(config.method.weights, device=device)
    while True:
        for x, total in loader:
            x, total = x.to(device), total.to(device)
            modulus = torch.multinomial(weights, len(x), replacement=True)
            with products("fp32"):  # in full, whatever precision ours has
                with torch.autocast(device.type, torch.float16, enabled=fast):
                    outputs = forward(points(x[..., None], moduli).flatten(-2))
                    chosen = outputs.view(len(x), -1, 2)[torch.arange(len(x), device=device), modulus]
                    loss = F.mse_loss(chosen, points(total, moduli[modulus]))
                optimiser.zero_grad()
                scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
            scaler.step(optimiser)
            scaler.update()
            schedule.step()
            yield


def points(x: Tensor, modulus: Tensor) -> Tensor:
    """The point (cos, sin) of x on the circle of each modulus."""
    angle = 2 * math.pi * x / modulus
    return torch.stack((angle.cos(), angle.sin()), -1)
