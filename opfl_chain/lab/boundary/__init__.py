"""Evaluation of boundaries: honest rejections, and the smallest cheat that is seen."""
