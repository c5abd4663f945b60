"""HTTPS between processes: addresses, certificates, client and server."""
