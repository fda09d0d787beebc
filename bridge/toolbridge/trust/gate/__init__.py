"""SECURITY: authorization of calls on (server, tool)."""
