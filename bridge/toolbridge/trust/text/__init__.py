"""SECURITY: foreign text: sanitising and redaction of secrets."""
