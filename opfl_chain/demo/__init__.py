"""`opfl demo`: a whole job on this machine, watched while it runs and accounted for at its end."""
