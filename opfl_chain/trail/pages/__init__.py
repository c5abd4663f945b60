"""The trail as pages that a browser shows from a folder, without anything from elsewhere."""
