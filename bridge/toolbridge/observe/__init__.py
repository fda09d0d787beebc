"""Observers: audit log, progress line, OpenTelemetry tracing. They receive events and decide nothing."""
