"""What a run is: frozen dataclasses that validate themselves, survive JSON, and hash to a stable name.

A run is five things: a :class:`Problem`, a :class:`Method`, a :class:`Model`, a :class:`Training` and a seed.
`settings` builds one from the flat names that flags, files, sweeps and the Python API share.

Imports only the standard library, `errors`, `checked` and `files`; any other module may import this one.
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
"""Version of the JSON form; a file of another version is refused."""
DATA = {"data": "data_sha256", "test_data": "test_data_sha256"}
"""The settings that name a file of inputs, and those that hold the digest of its contents."""
LATER = {
    "harmonics", "asked", "augment", "tails", "readout", "lift", "optimiser", "asks", "test_data", "test_data_sha256",
}  # fmt: skip
"""Settings added since the first results. At their defaults the JSON form omits them, so that old hashes hold."""
TAUS = (0.005, 0.01, 0.05, 0.1)
"""The τ of a run's τ-accuracies: how far off an answer may be, as a share of q. The paper's, and tighter ones."""

MOST_ASKS = 1000
"""The most ways a question may be asked: the average of the answers settles long before."""

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
    """A name for a choice of the settings below. naive: q alone, uniform inputs; sparse: q alone, sparse inputs; aux:
    the paper's method, q and K·q; ladder: q, 2q, 4q, … up to at least N·q; auto: the ladder with two harmonics and
    more weight for rare sums, and with its own encoder and optimiser; custom: the moduli that --moduli gives."""
    distribution: Distribution = "uniform"
    """Training inputs. uniform: every entry uniform; sparse: z entries filled, the rest 0, with z drawn from the law
    g(z) ∝ 1/√(N−z+1)."""
    fill: Fill = "zero"
    """What fills the entries of sparse inputs. zero: 0..q−1, as in the paper; nonzero: 1..q−1."""
    moduli: tuple[int, ...] = (1,)
    """The multipliers m_j of q. The first is 1, and inference reads it alone (with --harmonics, all of them)."""
    weights: tuple[float, ...] = (1.0,)
    """The weight w_j of each modulus, then of each harmonic; they sum to 1."""
    draw: Draw = "expected"
    """How training picks moduli. sampled: one per sample, drawn anew at each visit (Eq. 2); fixed: one per sample,
    drawn once; batched: one per batch; expected: all of them, as the weighted sum of their losses."""
    alpha: float = 0.0
    """Weight of the regulariser ‖p‖² + 1/‖p‖² on the angular output, the sparse method's guard against collapse."""
    harmonics: tuple[int, ...] = ()
    """Also train a point at h times the answer's angle, for each h: finer than q's own. Their weights come last in
    --weights."""
    asked: Asked = "own"
    """Which points learn a drawn label. own: that of its modulus; all: those of all moduli, as the same number."""
    augment: Augment = "none"
    """shift: add one random constant, mod q, to all terms of a sample, drawn anew at each visit."""
    tails: float = 1.0
    """The most that a rare sum, far from the mean of uniform inputs, weighs at moduli above q, where a common sum
    weighs 1. auto: 20 on uniform inputs, 5 with an encoder smaller than the paper's."""

    @property
    def k(self) -> int | None:
        """The paper's K, if there is exactly one auxiliary modulus and no harmonic."""
        return self.moduli[1] if self.rungs == 2 and not self.harmonics else None

    @property
    def rungs(self) -> int:
        """Number of points or labels asked for: one per modulus and one per harmonic."""
        return len(self.moduli) + len(self.harmonics)

    @property
    def r(self) -> float | None:
        """The paper's r, if there is exactly one auxiliary modulus and no harmonic."""
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
    """auto: classes for token, points for angular; angles: a point on a circle for each modulus, for token too."""
    layers: int = 4
    """Number of blocks."""
    heads: int = 4
    """Attention heads per block; their number divides the width."""
    width: int = 256
    """Embedding dimension D."""
    hidden: int = 2048
    """Width of the feed-forward layer."""
    norm: Norm = "pre"
    """Layer norm before each sub-layer (pre) or after its residual sum (post)."""
    final_norm: bool = True
    """A layer norm between the last block and the read-out."""
    bias: bool = True
    """Biases in linear layers and norms."""
    init: str = "default"
    """Initial weights. default: PyTorch's own; cloned: the same, but with all blocks alike, as in
    torch.nn.TransformerEncoder; a number σ: all weights N(0, σ²), biases 0; linear-σ: the same, but queries, keys,
    values and a learned token as in default."""
    lift: float = 0.0
    """σ of the embedding's initial weights, N(0, σ²), with bias 0; at 0 the embedding starts as --init says."""
    dropout: float = 0.0
    """Share of attention weights and activations dropped in training."""
    pooling: Pooling = "cls"
    """How N hidden states become one. cls: that of a learned token put in front; mean or max: theirs; flatten: all of
    them, joined; first: the first."""
    activation: Activation = "relu"
    """The function between the two linear maps of the feed-forward layer."""

    @property
    def reads_first(self) -> bool:
        """Whether only the first position of a sample is read out."""
        return self.pooling in ("cls", "first")

    @property
    def angles(self) -> bool:
        """Whether the read-out is a point on a circle for each modulus, rather than classes."""
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
    """How the encoder is trained; the defaults are the paper's."""

    samples: int = 100_000
    """Number of training inputs, drawn from the seed and reused in every epoch."""
    data: str = ""
    """A .npz file whose array x replaces the drawn inputs; its length then sets --samples."""
    data_sha256: str = ""
    """Digest of that array, so that a run names its data and not merely a path."""
    epochs: int = 10
    """Passes over the training inputs, each in its own order."""
    batch: int = 250
    """Samples per step."""
    optimiser: Optimiser = "adamw"
    """adamw, or muon: Muon for the blocks' matrices, AdamW for everything else."""
    lr: float = 3e-5
    """Peak learning rate."""
    warmup: float = 0.05
    """Share of the steps over which the learning rate rises from 0; it then falls linearly to 0."""
    beta1: float = 0.9
    """Decay of the mean gradient, and Muon's momentum."""
    beta2: float = 0.999
    """AdamW's decay of the mean squared gradient."""
    weight_decay: float = 0.1
    """The optimiser's pull of every parameter towards 0."""
    clip: float = 0.0
    """Largest gradient norm of a model; 0: no clipping."""
    precision: Precision = "auto"
    """Arithmetic of the trunk (tf32: of all matrix products); master weights, loss and the rest stay fp32."""
    test_samples: int = 1_000_000
    """Number of uniform inputs for the final figures; every run of a problem gets the same ones."""
    test_data: str = ""
    """A .npz file whose array x replaces them, at most so many; every tenth row is for the curve, and to choose by."""
    test_data_sha256: str = ""
    """Digest of that array."""
    asks: int = 1
    """Above 1: also measure the final model with each question asked in this many ways, and the answers averaged."""

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
        """Read the JSON form; refuse an unknown version or field by name."""
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
        """Read a run's `config.json`; every error names the file."""
        content = read_json(path)
        try:
            return cls.from_dict(unsealed(content, "It"))
        except UserError as error:
            raise UserError(f"{path}: {error}") from None

    @property
    def hash(self) -> str:
        """Twelve hexadecimal digits that name this run: equal runs have equal hashes on any machine."""
        plain = self.to_dict()
        for path in DATA:
            plain["training"].pop(path, None)  # the path does not matter; the contents (the digest) do
        del plain["method"]["method"]  # a method is its values, not its name
        text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def check_asks(asks: int) -> None:
    """Refuse a number of ways to ask outside 1..:data:`MOST_ASKS`."""
    able = is_int(asks) and 1 <= asks <= MOST_ASKS
    require(able, f"--asks is {asks!r}, but a question is asked once, or up to {MOST_ASKS:,} ways.")


GROUPS: dict[str, type[Any]] = {"problem": Problem, "method": Method, "model": Model, "training": Training}
"""The parts of a run, by name."""
