"""The protocols that the scripted server speaks, one module each, behind one shape."""
