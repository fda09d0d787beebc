"""The Python guest's runner. Nothing here is trusted: the host validates every frame that leaves the sandbox."""
