"""The paper's tables of attacks, costs and deterrence, each from a run that is kept."""
