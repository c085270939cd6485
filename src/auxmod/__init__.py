"""auxmod: Transformers that learn (x_1 + … + x_N) mod q, with an auxiliary modulus.

    import auxmod

    model = auxmod.train(preset="demo", method="aux", k=4, r=0.4)
    model.predict([3, 14, 15, 9, 26, 5, 27, 18, 28, 4, 19, 2, 30, 11, 21, 23])
    model.save_pretrained("my-model")
    auxmod.load("my-model").evaluate(distribution="sparse")
    cells = auxmod.sweep(preset="demo", method="aux", k=[3, 4, 5], r=0.4, seed=range(3))  # nine, trained together

A `RunConfig` describes a run; `build` makes one from flat settings. torch is imported on first use.
"""

from typing import TYPE_CHECKING, Any

from auxmod.config import RunConfig
from auxmod.errors import UserError

if TYPE_CHECKING:
    from auxmod.experiments.many import Cell, sweep
    from auxmod.experiments.single import train
    from auxmod.learning.trained import TrainedModel, load

__version__ = "0.1.0"
__all__ = ["Cell", "RunConfig", "TrainedModel", "UserError", "build", "load", "sweep", "train"]


def build(preset: str | None = None, **settings: Any) -> RunConfig:
    """Build the run that :func:`train` would train from these settings; a preset fills those left open.

    >>> build(n=16, q=97, method="aux", k=5, r=0.4).method.moduli
    (1, 5)
    """
    from auxmod.experiments.resolving import resolved

    return resolved(settings, preset)


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name == "train":
        from auxmod.experiments import single

        return single.train
    if name in ("Cell", "sweep"):
        from auxmod.experiments import many

        return getattr(many, name)
    if name in ("TrainedModel", "load"):
        from auxmod.learning import trained

        return getattr(trained, name)
    raise AttributeError(f"module 'auxmod' has no attribute {name!r}")
