"""What the TypeScript image is made from."""
