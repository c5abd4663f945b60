"""`opfl demo`: a whole job, shown live and accounted for at its end."""
