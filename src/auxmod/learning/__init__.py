"""How a run is learned: model, objective, engine. Imports config and problem."""
