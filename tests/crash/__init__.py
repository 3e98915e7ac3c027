"""Kill the real system at every point and at any time, and count what was lost or came twice."""
