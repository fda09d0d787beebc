"""Checking a program against the stubs before it runs: a mistake then costs milliseconds, and no call is made."""
