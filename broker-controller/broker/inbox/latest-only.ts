/** Work by key, one at a time, in which only the newest waits: whole states make the ones between worthless. */

export interface NewestFirst {
  /**
   * Does the work when what is under way for this key is done. Work that waited and was overtaken is never done; its
   * promise resolves with that of the newer one. Rejects as the work does.
   */
  run(key: string, work: () => Promise<void>): Promise<void>
}

export function newestFirst(): NewestFirst {
  const underWay = new Map<string, Promise<void>>()
  const waiting = new Map<string, { work: () => Promise<void>; readonly done: Promise<void> }>()

  const start = (key: string, work: () => Promise<void>) => {
    const done = work().finally(() => underWay.delete(key))
    underWay.set(key, done)
    return done
  }

  return {
    run(key, work) {
      // Looked at first: what waited is about to start when what was under way has just ended.
      const next = waiting.get(key)
      if (next !== undefined) {
        next.work = work
        return next.done
      }
      const now = underWay.get(key)
      if (now === undefined) return start(key, work)
      const begin = () => {
        const newest = waiting.get(key)?.work ?? work
        waiting.delete(key)
        return start(key, newest)
      }
      const done = now.then(begin, begin)
      waiting.set(key, { work, done })
      return done
    },
  }
}
