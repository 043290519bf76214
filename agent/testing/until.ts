/** Waits for a state that a test expects. */

/** Resolves as soon as `holds` gives something true; rejects after `ms` with `what` and the last thing seen. */
export async function until<T>(what: string, holds: () => T, ms = 60_000): Promise<NonNullable<T>> {
  const deadline = performance.now() + ms
  for (;;) {
    const seen = holds()
    if (seen) return seen
    if (performance.now() > deadline) throw new Error(`Waited ${ms} ms in vain: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
