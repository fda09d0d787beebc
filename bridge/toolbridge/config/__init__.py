"""Configuration: files and code, parsed and checked into one frozen `Config`."""
