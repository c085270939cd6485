"""The mathematics: inputs, labels, metrics, theory. Imports config alone."""
