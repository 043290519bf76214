/** Waiting for the signal that ends a loop, alone or beside something else. */

/** Resolves when `signal` aborts. */
export async function aborted(signal: AbortSignal): Promise<void> {
  await unlessAborted(new Promise<never>(() => undefined), signal)
}

/** What `work` gives, or undefined as soon as `signal` aborts: the work itself goes on, and nobody hears of it. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  let stop = () => {}
  const over = new Promise<undefined>((resolve) => {
    stop = () => resolve(undefined)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
  })
  try {
    return await Promise.race([work, over])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
