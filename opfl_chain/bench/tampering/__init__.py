"""One member tampers with audits of proved steps: what it sends, how audits end, who is named."""
