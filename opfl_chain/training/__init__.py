"""The client's side of learning: data sets, the local step, and the update of the model.

A gradient may differ between machines by rounding, within the boundary that was calibrated. The
update that the aggregate makes to the weights may not: it is the same bytes everywhere.
"""
