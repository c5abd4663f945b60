"""What is measured, side by side: the straightforward way and ours."""
