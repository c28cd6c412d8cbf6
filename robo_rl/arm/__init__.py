"""A bundle on an arm: where its episodes happen, and what they come to. No torch."""
