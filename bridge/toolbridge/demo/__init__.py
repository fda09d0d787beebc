"""Small MCP servers that come along, for `toolbridge demo`, the examples and the tests."""
