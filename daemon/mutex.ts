/** Runs asynchronous work one at a time, in the order of the calls. */
export type Mutex = <T>(work: () => Promise<T>) => Promise<T>

/** The result of `work` is its caller's, an error too; the next work starts after either. */
export function mutex(): Mutex {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const done = last.then(work)
    last = done.catch(() => undefined)
    return done
  }
}
