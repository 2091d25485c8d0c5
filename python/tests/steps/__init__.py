"""Random programs of launches and host writes, against the same in plain Python."""
