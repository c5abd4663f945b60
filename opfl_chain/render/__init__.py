"""Rendering of results: numbers in words, terminal and Markdown tables, plots, HTML, SVG."""
