"""Boolean circuits over secret-shared words."""
