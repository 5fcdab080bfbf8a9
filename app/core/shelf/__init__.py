"""The shelf: documents that are kept, counted, and shared between sessions.

How the parts fit together (all of it headless):

- `app.core.shelf.store.ShelfStore`: documents by content hash in shelf.db, with exact token counts
  by tokenizer: `ShelfStore.open()`, `.add(document)`, `.get(sha256)`, `.entries()`,
  `.remove(sha256)`.
- `app.core.shelf.counting.Counter`: counts by the running engine's own tokenizer, remembered.
  `await counter.document(document, engine)` gives its exact tokens in the prompt, marks included.
- `app.core.budget`: `await budget.plan(conversation, engine, counter, question)` tells how much of
  the context each part takes and, where it is too much, the choices.
- `app.core.shelf.warming.Warmer`: reads the documents into the engine's cache while it is idle;
  `warmer.warmth(sha256)` tells cold, warming or warm.
"""
