// Holds the precompiled header.
