"""Many runs: run directories, results files, sweeps, searches, recipes. Imports `learning` and the layers below it."""
