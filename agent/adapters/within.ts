/** Calls that have no deadline of their own, and cannot be called off. */

/** What `work` gives, or an error saying `late` after `ms`. The work itself goes on; its answer is then dropped. */
export async function within<T>(ms: number, late: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${late} within ${ms / 1000} s`)), ms)
  })
  try {
    return await Promise.race([work, deadline])
  } finally {
    clearTimeout(timer)
  }
}

/** A call that hangs holds a thread: while it does, later askers wait for the same answer instead of taking another. */
export function onceAtATime<T>(ask: (path: string) => Promise<T>): (path: string) => Promise<T> {
  const asked = new Map<string, Promise<T>>()
  return (path) => {
    const answer = asked.get(path) ?? ask(path).finally(() => asked.delete(path))
    asked.set(path, answer)
    return answer
  }
}
