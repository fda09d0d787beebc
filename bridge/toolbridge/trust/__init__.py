"""Trust: what must happen to foreign text and foreign servers before they are used."""
