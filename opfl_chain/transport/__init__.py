"""How processes on different machines talk: addresses, certificates, HTTPS. Knows of no protocol.

- `server`: serves routes, each within limits
- `client`: asks a peer, whose certificate it checks
- `certificates`, `tls`: the authority and what it issued
- `errors`: all that can go wrong, by name
"""
