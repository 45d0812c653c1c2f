"""What a level asks of the world, each by a model and by an offline stand-in beside it."""
