"""Many runs: the store, sweeps, recipes. Imports learning and what it imports."""
