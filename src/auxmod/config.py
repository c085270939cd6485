"""What a run is: frozen dataclasses that validate themselves, survive JSON, and hash to a stable name.

Standard library only; every other module may import this one. A run is five things: a :class:`Problem`, a
:class:`Method`, a :class:`Model`, a :class:`Training` and a seed. `settings` turns the flat names that flags,
files, sweeps and the Python API speak into one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from auxmod.checked import OF_LINEAR, Checked, is_int, shown, sigma_of
from auxmod.errors import UserError, require
from auxmod.files import read_json, unsealed

FORMAT = 1
"""Version of the JSON form; a file of another version is refused, never guessed at."""
LATER = {"harmonics", "asked", "augment", "tails", "readout", "lift", "optimiser", "asks"}
"""Settings added since the first results: left out of the JSON form at their defaults, so that old names hold."""
TAUS = (0.005, 0.01, 0.05, 0.1)
"""How far from right, as a share of q, an answer may be for a run's τ-accuracies: the paper's, and closer."""

MOST_ASKS = 1000
"""As often may a question be asked: the answers' average has long settled."""

MethodName = Literal["naive", "sparse", "aux", "ladder", "auto", "custom"]
Distribution = Literal["uniform", "sparse"]
Fill = Literal["zero", "nonzero"]
Draw = Literal["sampled", "expected", "fixed", "batched"]
Embedding = Literal["token", "angular"]
Norm = Literal["pre", "post"]
Asked = Literal["own", "all"]
Augment = Literal["none", "shift"]
Readout = Literal["auto", "angles"]
Pooling = Literal["cls", "mean", "max", "flatten", "first"]
Activation = Literal["relu", "gelu"]
Optimiser = Literal["adamw", "muon"]
Precision = Literal["auto", "fp32", "tf32", "fp16", "bf16"]


@dataclass(frozen=True, kw_only=True)
class Problem(Checked):
    """Compute (x_1 + … + x_N) mod q."""

    n: int = 16
    """Number of terms N."""
    q: int = 97
    """The modulus."""

    def _validate(self) -> None:
        self._check("n", lambda n: n >= 1, "a sum needs at least one term: give --n 1 or more")
        self._check("q", lambda q: q >= 2, "a modulus is at least 2: give --q 2 or more")
        self._check("q", lambda q: q <= 2**30, "inputs are 32-bit numbers: give --q 1073741824 or less")
        require(
            self.n * self.q < 2**53,
            f"--n {self.n} with --q {self.q} makes sums past 2^53, beyond exact angles: choose a smaller --q.",
        )


@dataclass(frozen=True, kw_only=True)
class Method(Checked):
    """An input distribution, moduli m_j·q with weights w_j, and a way to draw from them: nothing else."""

    method: MethodName = "naive"
    """A name for the settings below. naive: q alone, uniform inputs; sparse: q alone, sparse inputs; aux: the
    paper's, q and K·q; ladder: q, 2q, 4q, … ≥ N·q; auto: the ladder, two harmonics, more weight for rare sums, and an
    encoder and an optimiser to go with them; custom: what --moduli says."""
    distribution: Distribution = "uniform"
    """Training inputs: each entry uniform, or the sparse law g(z) ∝ 1/√(N−z+1) of non-zero counts."""
    fill: Fill = "zero"
    """Sparse entries are filled from {0..q−1} (zero: the paper) or {1..q−1} (nonzero)."""
    moduli: tuple[int, ...] = (1,)
    """The multipliers m_j; the first is 1 and is what inference reads (with --harmonics it reads all)."""
    weights: tuple[float, ...] = (1.0,)
    """The weight w_j of each modulus; they sum to 1."""
    draw: Draw = "expected"
    """sampled: one modulus a sample, afresh at each visit (Eq. 2); fixed: once a sample for good; batched: one
    modulus a batch; expected: the weighted sum of all the losses."""
    alpha: float = 0.0
    """Weight of the regulariser ‖p‖² + 1/‖p‖² on the angular output (the sparse method's collapse guard)."""
    harmonics: tuple[int, ...] = ()
    """Also ask for h times the answer's angle, for each h: finer points than q's; --weights goes on with theirs."""
    asked: Asked = "own"
    """A drawn label is asked of its own modulus's point, or (all) of the points of all moduli, as the same number."""
    augment: Augment = "none"
    """shift: add one random constant to all terms of a sample, mod q, afresh at each visit."""
    tails: float = 1.0
    """How many times as much as others a sum far from the mean of uniform inputs may weigh, at moduli above q; 1: all
    alike. auto: 20 on uniform inputs, 5 with a smaller encoder."""

    @property
    def k(self) -> int | None:
        """The paper's K, where there is one auxiliary modulus."""
        return self.moduli[1] if self.rungs == 2 and not self.harmonics else None

    @property
    def rungs(self) -> int:
        """How many points or labels are asked for: one a modulus and one a harmonic."""
        return len(self.moduli) + len(self.harmonics)

    @property
    def r(self) -> float | None:
        """The paper's r, where there is one auxiliary modulus."""
        return self.weights[1] if self.k is not None else None

    def _validate(self) -> None:
        self._check("moduli", lambda m: m[:1] == (1,), "the first must be 1, the modulus q itself")
        self._check("moduli", lambda m: len(set(m)) == len(m) and min(m) >= 1, "they must be distinct and ≥ 1")
        self._check(
            "harmonics", lambda h: len(set(h)) == len(h) and min(h, default=2) >= 2, "they must be distinct and ≥ 2"
        )
        w = self.weights
        require(
            len(w) == self.rungs,
            f"--weights has {len(w)} values for {self.rungs} moduli and harmonics: give one weight a modulus.",
        )
        require(
            not self.harmonics or self.asked == "own",
            "--asked all has no meaning with --harmonics: leave one of them out.",
        )
        self._check("weights", lambda w: all(0 < v <= 1 for v in w), "each must lie in (0, 1]")
        require(abs(sum(w) - 1) < 1e-6, f"--weights is {shown(w)}, which sums to {sum(w):g}; make it sum to 1.")
        self._check("alpha", lambda alpha: alpha >= 0, "a penalty's weight is 0 or more")
        self._check("tails", lambda tails: tails >= 1, "it is at least 1, which weighs all sums alike")
        require(
            self.tails == 1 or len(self.moduli) > 1,
            f"--tails is {self.tails:g}, but rare sums weigh more at moduli above q, and --method {self.method} has "
            "none here: leave --tails out, or give --moduli such as 1,2,4.",
        )


@dataclass(frozen=True, kw_only=True)
class Model(Checked):
    """The encoder; the defaults are the paper's."""

    embedding: Embedding = "angular"
    """token: Approach 1, K·q classes; angular: Approach 2, a point on a circle for each modulus."""
    readout: Readout = "auto"
    """auto: classes for tokens, points for angular; angles: a point on a circle for each modulus, for tokens too."""
    layers: int = 4
    """Number of blocks."""
    heads: int = 4
    """Attention heads of a block; they divide the width."""
    width: int = 256
    """Embedding dimension D."""
    hidden: int = 2048
    """Width of the feed-forward layer."""
    norm: Norm = "pre"
    """Layer norm before each sub-layer, or after its residual sum."""
    final_norm: bool = True
    """A layer norm between the last block and the read-out."""
    bias: bool = True
    """Biases in linear layers and norms."""
    init: str = "default"
    """default: PyTorch's own; cloned: the same, all blocks alike, as torch.nn.TransformerEncoder makes them; a number
    σ: all weights N(0, σ²), biases 0; linear-σ: the same, but queries, keys, values and a learned token as default."""
    lift: float = 0.0
    """σ of the embedding's own initial weights, N(0, σ²), its bias 0; with 0 they start as --init says."""
    dropout: float = 0.0
    """Share of attention weights and activations dropped in training."""
    pooling: Pooling = "cls"
    """How N hidden states become one: a learned token in front, their mean, maximum, all of them, or the first."""
    activation: Activation = "relu"
    """Between the two linear maps of the feed-forward layer."""

    @property
    def reads_first(self) -> bool:
        """Whether only the first position of a sample is read out."""
        return self.pooling in ("cls", "first")

    @property
    def angles(self) -> bool:
        """Whether the read-out is a point on a circle for each modulus, and not classes."""
        return self.embedding == "angular" or self.readout == "angles"

    def _validate(self) -> None:
        self._check("layers heads width hidden", lambda v: v >= 1, "must be 1 or more")
        require(
            self.width % self.heads == 0,
            f"--width {self.width} does not divide into --heads {self.heads}: choose a multiple.",
        )
        self._check("dropout", lambda v: 0 <= v < 1, "must lie in [0, 1)")
        self._check("lift", lambda v: v >= 0, "a standard deviation is 0 or more")
        sigma = sigma_of(self.init)
        require(
            self.init in ("default", "cloned") or (sigma is not None and sigma > 0),
            f"--init is {self.init!r}; give default, cloned, or a σ above 0, as in 0.02 or {OF_LINEAR}0.02.",
        )


@dataclass(frozen=True, kw_only=True)
class Training(Checked):
    """How it is learned; the defaults are the paper's."""

    samples: int = 100_000
    """Training inputs, each drawn anew from the seed, and reused each epoch."""
    data: str = ""
    """A .npz file with an array x to train on in place of drawn inputs; --samples is then its length."""
    data_sha256: str = ""
    """Digest of that file's arrays, so that a run names its data and not merely a path."""
    epochs: int = 10
    """Passes over the training inputs, each in an order of its own."""
    batch: int = 250
    """Samples a step."""
    optimiser: Optimiser = "adamw"
    """adamw; or muon: Muon for the matrices of the blocks, AdamW for everything else."""
    lr: float = 3e-5
    """Peak learning rate."""
    warmup: float = 0.05
    """Share of the steps over which the learning rate rises from 0; it then falls linearly to 0."""
    beta1: float = 0.9
    """Decay of the mean gradient (Muon's momentum, too)."""
    beta2: float = 0.999
    """AdamW's decay of the mean squared gradient."""
    weight_decay: float = 0.1
    """The optimiser's pull of every parameter towards 0."""
    clip: float = 0.0
    """Largest gradient norm of a model; 0 is no clipping."""
    precision: Precision = "auto"
    """Arithmetic of the trunk, with tf32 of all matrix products; master weights, loss and the rest are always fp32."""
    test_samples: int = 1_000_000
    """Uniform inputs that the final figures are measured on; the same ones for every run of a problem."""
    asks: int = 1
    """Measure the final model also when it is asked each question so many ways, and the answers averaged."""

    @property
    def steps_per_epoch(self) -> int:
        return self.samples // self.batch

    @property
    def steps(self) -> int:
        return self.steps_per_epoch * self.epochs

    def _validate(self) -> None:
        self._check("samples epochs batch test_samples", lambda v: v >= 1, "must be 1 or more")
        check_asks(self.asks)
        require(
            self.batch <= self.samples,
            f"--batch {self.batch} is larger than --samples {self.samples}: no full batch can be made.",
        )
        self._check("lr", lambda v: v > 0, "a learning rate is a positive number")
        self._check("warmup", lambda v: 0 <= v < 1, "is a share of the steps in [0, 1)")
        self._check("beta1 beta2", lambda v: 0 <= v <= 1 - 1e-6, "must lie in 0..0.999999")
        self._check("weight_decay", lambda v: v >= 0, "must be 0 or more")
        self._check("clip", lambda v: v >= 0, "is a norm, or 0 for no clipping")


@dataclass(frozen=True, kw_only=True)
class RunConfig(Checked):
    """One run: everything that decides its result, and nothing else."""

    problem: Problem = field(default_factory=Problem)
    method: Method = field(default_factory=Method)
    model: Model = field(default_factory=Model)
    training: Training = field(default_factory=Training)
    seed: int = 0

    def _validate(self) -> None:
        self._check("seed", lambda seed: 0 <= seed < 2**63, "must lie in 0..2^63−1")
        n, q = self.problem.n, self.problem.q
        require(
            max(self.method.moduli) * q < 2**53,
            f"The modulus {max(self.method.moduli)}·{q} passes 2^53, beyond exact angles: choose a smaller K.",
        )
        require(
            self.model.angles or not (self.method.harmonics or self.method.asked == "all" or self.method.alpha),
            "--harmonics, --asked and --alpha are about points on a circle: give --embedding token --readout angles.",
        )
        require(
            max(self.method.harmonics, default=1) * n * q < 2**53,
            f"--harmonics with --n {n} and --q {q} passes 2^53, beyond exact angles: choose smaller ones.",
        )
        require(
            self.method.fill == "zero" or q > 2 or self.method.distribution == "uniform" or n == 1,
            "With --q 2 and --fill nonzero every filled entry is 1: use --fill zero or a larger --q.",
        )

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, with its format version."""
        plain: dict[str, Any] = {"format": FORMAT}
        for name in GROUPS:
            part = getattr(self, name)
            fields = ((f.name, getattr(part, f.name), f.default) for f in dataclasses.fields(part))
            plain[name] = {key: value for key, value, usual in fields if not (key in LATER and value == usual)}
        whole: dict[str, Any] = json.loads(json.dumps(plain | {"seed": self.seed}))
        return whole

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read the JSON form back; an unknown version or field is refused by name."""
        require(isinstance(data, Mapping), "A configuration must be a JSON object.")
        version = data.get("format")
        require(
            version == FORMAT,
            f"This configuration has format {version!r}; this version of auxmod reads format {FORMAT}.",
        )
        known = {"format", "seed", *GROUPS}
        require(set(data) == known, f"A configuration has the parts {sorted(known)}, but this one {sorted(data)}.")
        parts: dict[str, Any] = {}
        for name, kind in GROUPS.items():
            require(isinstance(data[name], Mapping), f"The configuration's {name!r} must be an object.")
            expected = {f.name for f in dataclasses.fields(kind)}
            odd = (set(data[name]) ^ expected) - (LATER - set(data[name]))
            require(not odd, f"The configuration's {name!r} has unknown or missing fields: {sorted(odd)}.")
            parts[name] = kind(**data[name])
        return cls(seed=data["seed"], **parts)

    @classmethod
    def read(cls, path: Path) -> Self:
        """A run's `config.json`; what is wrong with it is said by its name."""
        content = read_json(path)
        try:
            return cls.from_dict(unsealed(content, "It"))
        except UserError as error:
            raise UserError(f"{path}: {error}") from None

    @property
    def hash(self) -> str:
        """Twelve hexadecimal digits that name this run: equal runs have equal hashes, on any machine."""
        plain = self.to_dict()
        del plain["training"]["data"]  # where the file lies does not matter; what is in it (its digest) does
        del plain["method"]["method"]  # nor does the label of a method
        text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def check_asks(asks: int) -> None:
    """Refuse to ask never, or for ever."""
    able = is_int(asks) and 1 <= asks <= MOST_ASKS
    require(able, f"--asks is {asks!r}, but a question is asked once, or up to {MOST_ASKS:,} ways.")


GROUPS: dict[str, type[Any]] = {"problem": Problem, "method": Method, "model": Model, "training": Training}
"""The parts of a run by name."""
