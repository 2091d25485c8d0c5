"""Kernels: arguments, specialisations, tables, launches."""
