/** Runs work by key, one at a time. Only the latest waits: a whole state makes the earlier ones superfluous. */

export interface LatestOnly {
  /**
   * Runs the work when the earlier work for this key has ended. Work that is replaced while it waits never runs; its promise
   * resolves with that of the later work. Rejects as the work does.
   */
  run(key: string, work: () => Promise<void>): Promise<void>
}

export function latestOnly(): LatestOnly {
  const running = new Map<string, Promise<void>>()
  const waiting = new Map<string, { work: () => Promise<void>; readonly done: Promise<void> }>()

  const start = (key: string, work: () => Promise<void>) => {
    const done = work().finally(() => running.delete(key))
    running.set(key, done)
    return done
  }

  return {
    run(key, work) {
      // Checked first: when the running work has just ended, the waiting work is about to start.
      const next = waiting.get(key)
      if (next !== undefined) {
        next.work = work
        return next.done
      }
      const now = running.get(key)
      if (now === undefined) return start(key, work)
      const begin = () => {
        const latest = waiting.get(key)?.work ?? work
        waiting.delete(key)
        return start(key, latest)
      }
      const done = now.then(begin, begin)
      waiting.set(key, { work, done })
      return done
    },
  }
}
