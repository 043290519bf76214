/** Acts on each item, at most `limit` at a time. The first error is thrown, after those under way have ended. */
export async function inParallel<Item>(
  items: Iterable<Item>,
  limit: number,
  act: (item: Item) => Promise<void>,
): Promise<void> {
  const rest = items[Symbol.iterator]()
  const errors: unknown[] = []
  const worker = async (first: IteratorResult<Item>) => {
    for (let next = first; next.done !== true && errors.length === 0; next = rest.next()) {
      await act(next.value).catch((error) => errors.push(error))
    }
  }
  const workers: Promise<void>[] = []
  // Loops call this with nothing to do most of the time.
  for (let first = rest.next(); first.done !== true; first = rest.next()) {
    workers.push(worker(first))
    if (workers.length >= limit) break
  }
  await Promise.all(workers)
  if (errors.length > 0) throw errors[0]
}
