"""The terminal chat: `story` folds events into pieces, `paint` draws them, `terminal` and `plain` show them."""
