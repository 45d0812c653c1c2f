"""How the system is judged. Nothing in the system imports from here."""
