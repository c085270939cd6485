"""The generated parts of README.md and docs/: `pages` lists them, and the other modules make them."""
