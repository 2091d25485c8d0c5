"""From source to tree, with places."""
