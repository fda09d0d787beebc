"""SECURITY: foreign text: sanitising, redaction of secrets, tracebacks."""
