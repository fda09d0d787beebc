"""SECURITY: the injection classifier over tool texts, with its weights."""
