"""MCP servers: the only code that imports the MCP client."""
