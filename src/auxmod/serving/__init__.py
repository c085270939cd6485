"""`auxmod serve`: a local page that follows the runs of a store, and a playground for its models."""
