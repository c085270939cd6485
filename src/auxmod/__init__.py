"""auxmod: Transformers that learn (x_1 + … + x_N) mod q, with an auxiliary modulus."""

__version__ = "0.1.0"
