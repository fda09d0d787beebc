"""SECURITY: child processes of local servers and their pipes."""
