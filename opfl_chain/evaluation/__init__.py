"""How often each rule rejects an honest client, and the smallest cheat that it sees."""
