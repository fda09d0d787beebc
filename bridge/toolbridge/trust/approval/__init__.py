"""SECURITY: approval of a server before it is spawned or reached."""
