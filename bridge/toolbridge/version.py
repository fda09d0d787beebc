"""The version: hatch, the command line and the protocol handshakes read it here."""

__version__ = "0.1.0"
