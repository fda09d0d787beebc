"""From a guest's call to the tool and back: the one path, and what a run keeps of it."""
