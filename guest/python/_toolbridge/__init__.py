"""What runs a program inside the sandbox. Nothing here is trusted: the host checks whatever leaves it."""
