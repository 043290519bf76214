/** Work that waits for earlier work of the same key, and for no other. */

export type TurnsByKey = <T>(key: string, act: () => Promise<T>) => Promise<T>

/** The next work of a key begins when the one before has ended, also when that failed; without one, at once. */
export function turnsByKey(): TurnsByKey {
  const last = new Map<string, Promise<unknown>>()
  return <T>(key: string, act: () => Promise<T>): Promise<T> => {
    const before = last.get(key)
    const turn = before === undefined ? act() : before.then(act, act)
    last.set(key, turn)
    const done = () => {
      if (last.get(key) === turn) last.delete(key)
    }
    turn.then(done, done)
    return turn
  }
}
