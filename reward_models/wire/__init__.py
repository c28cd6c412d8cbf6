"""Models behind a wire: how they are asked, what may be spent, and what was answered before."""
