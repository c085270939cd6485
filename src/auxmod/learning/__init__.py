"""Training: the model, the objective, the engine. Imports `problem` and the layers below it."""
