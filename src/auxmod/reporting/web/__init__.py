"""Single-file web pages: `report` shows a store, `view` shows one run."""
