"""The boundary: every byte that arrives here comes from hostile code."""
