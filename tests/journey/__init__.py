"""The real system, one promise to the user a file."""
