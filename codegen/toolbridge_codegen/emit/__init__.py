"""From the type model to `.d.ts`, `.pyi` and compact text."""
