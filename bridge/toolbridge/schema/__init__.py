"""JSON Schema validation of arguments and results, with a step budget."""
