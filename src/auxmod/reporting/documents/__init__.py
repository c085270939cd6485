"""The generated parts of README.md and docs/: `pages` lists them, the others make them."""
