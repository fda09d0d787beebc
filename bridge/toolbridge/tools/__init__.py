"""Host functions as tools: `@tool` and `create_server`."""
