"""From tree to statements of the core."""
