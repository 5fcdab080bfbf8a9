"""Everything about engines, headless: start them, prove them, talk to them."""
