"""Every known attack, by name, played on real daemons and a real chain."""
