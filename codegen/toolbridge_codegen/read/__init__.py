"""Reads JSON Schemas: $ref resolution, normalisation, kinds of values, notes."""
