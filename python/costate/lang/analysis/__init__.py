"""What a tree tells before it is traced."""
