"""The kernel language: from Python source to statements of a kernel."""
