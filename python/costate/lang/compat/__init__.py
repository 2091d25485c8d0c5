"""Names of Taichi and Quadrants."""
