/** Keeps what the watches deliver away from the cache while a decision that reads it pauses. */
type Observe<T> = (present: T | undefined, previous: T | undefined) => void

export interface ObservationGate {
  /** Calls `observe` at once, or when the gate opens, in the order of the calls. */
  through<T>(observe: Observe<T>): Observe<T>
  closedDuring<T>(act: () => Promise<T>): Promise<T>
}

export function observationGate(): ObservationGate {
  let isClosed = false
  const waiting: (() => void)[] = []
  return {
    through: (observe) => (present, previous) => {
      if (isClosed) waiting.push(() => observe(present, previous))
      else observe(present, previous)
    },
    async closedDuring(act) {
      isClosed = true
      try {
        return await act()
      } finally {
        isClosed = false
        for (const observe of waiting.splice(0)) observe()
      }
    },
  }
}
