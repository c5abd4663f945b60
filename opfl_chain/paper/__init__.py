"""The paper's tables of attacks, costs and deterrence."""
