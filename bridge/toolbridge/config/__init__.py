"""Configuration: files, and typed construction in code, into one frozen `Config`."""
