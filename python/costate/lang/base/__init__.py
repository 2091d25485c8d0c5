"""What all of the package has in common: threads, options, devices, types of elements."""
