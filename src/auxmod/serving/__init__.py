"""`auxmod serve`: a local page that follows the runs of a store, with a playground for its models."""
