"""SECURITY: connections over HTTP: SSRF rules, bounded answers, streamable HTTP and SSE."""
