"""Stand-ins at the kernel's seams, for tests of extensions."""
