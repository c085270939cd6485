"""Web pages of one file: `report` of a store, `view` of a run."""
