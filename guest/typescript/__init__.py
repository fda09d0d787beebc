"""Build of the TypeScript image."""
