/** The signal that ends a loop: waiting for it, and handing it on to a piece of work. */

/** Resolves when `signal` aborts. */
export async function aborted(signal: AbortSignal): Promise<void> {
  await unlessAborted(new Promise<never>(() => undefined), signal)
}

/** What `work` gives, or undefined as soon as `signal` aborts: the work itself continues, and its result is ignored. */
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

/**
 * `work` with a signal of its own, which aborts with `signal`, or when the work aborts it. Nothing of it stays on `signal`:
 * of `AbortSignal.any` something does on Node 20, however short the work.
 */
export async function withOwnSignal<T>(
  signal: AbortSignal | undefined,
  work: (own: AbortController) => Promise<T>,
): Promise<T> {
  const own = new AbortController()
  const stop = () => own.abort(signal?.reason)
  if (signal?.aborted) stop()
  signal?.addEventListener('abort', stop, { once: true })
  try {
    return await work(own)
  } finally {
    signal?.removeEventListener('abort', stop)
  }
}
