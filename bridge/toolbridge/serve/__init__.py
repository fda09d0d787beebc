"""toolbridge as an MCP server: any MCP client gets a handful of tools in place of hundreds of definitions."""
