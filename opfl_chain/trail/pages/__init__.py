"""The trail as HTML pages."""
