/** Addresses as the tables of Endpoints and EndpointSlices print them. */

const mostShown = 3

/** The first three, and the number of further ones (listWithMoreString). */
export function someOf(texts: readonly string[]): string {
  const shown = texts.slice(0, mostShown).join()
  return texts.length > mostShown ? `${shown} + ${texts.length - mostShown} more...` : shown
}
