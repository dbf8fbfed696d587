"""Container images of built sides."""
