"""What a cheating client submits: no chain, no MPC, and nobody's secrets but its own."""
