"""SECURITY: pins of tool definitions, against rug pulls."""
