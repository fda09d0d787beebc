"""The JavaScript guest: what runs inside, and how its image is made."""
