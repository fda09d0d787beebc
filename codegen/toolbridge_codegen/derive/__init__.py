"""From a normalized schema to the type model."""
