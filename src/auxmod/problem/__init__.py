"""The mathematics: inputs, labels, metrics, theory. Imports `settings` and what lies below it, nothing else."""
