"""Fields, ndarrays, structs, and their types."""
