/** What waits after a restore, as the test sets it. */
import type { HeldWorkloads, RestoreHold } from '../store/checkpoints/restore-hold.ts'

export interface FakeHold extends RestoreHold {
  release(to: HeldWorkloads): void
}

/** Holds all workloads, and all pods, until it is released. */
export function fakeHold(): FakeHold {
  const listeners: (() => void)[] = []
  let held: HeldWorkloads = 'all'
  return {
    holds: (what) => held === 'all' || held === what,
    holdsPod: () => held === 'all',
    holdsUnbound: () => held !== 'none',
    describe: () => (held === 'none' ? undefined : 'StatefulSets wait for the checkpoints of pi-2'),
    onRelease: (released) => void listeners.push(released),
    release(to) {
      held = to
      for (const notify of listeners) notify()
    },
  }
}
