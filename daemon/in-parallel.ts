/** Acts on each item, at most `limit` at a time. The first error is thrown, after those under way have ended. */
export async function inParallel<Item>(
  items: Iterable<Item>,
  limit: number,
  act: (item: Item) => Promise<void>,
): Promise<void> {
  const rest = items[Symbol.iterator]()
  const errors: unknown[] = []
  const worker = async () => {
    for (let next = rest.next(); next.done !== true && errors.length === 0; next = rest.next()) {
      await act(next.value).catch((error) => errors.push(error))
    }
  }
  await Promise.all(Array.from({ length: limit }, worker))
  if (errors.length > 0) throw errors[0]
}
