/** A machine whose memory, disks and processes are set by the test. */
import type { Observation, Observations, Signal, SignalSource, Stall, StallSignal } from '../eviction/observations.ts'

export interface FakeHost extends SignalSource {
  /** Sets what is available, of 1 Gi, a million inodes or 10,000 processes. */
  leave(signal: Signal, available: number): void
  /** The signal cannot be read from now on. */
  hide(signal: Signal, because: string): void
  /** Every signal can be read from now on. */
  show(): void
  /** Tasks wait for the resource for this percentage of the time. */
  stall(signal: StallSignal, percent: number): void
  /** Images are on a disk of their own. */
  separateImages(): void
  /** The folder of images is unknown from now on, as before Docker's first answer. */
  hideImages(): void
}

const gib = 2 ** 30
const whole: { readonly [S in Signal]: number } = {
  'memory.available': gib,
  'nodefs.available': gib,
  'nodefs.inodesFree': 1_000_000,
  'imagefs.available': gib,
  'imagefs.inodesFree': 1_000_000,
  'pid.available': 10_000,
}

/** A machine with all resources free. */
export function fakeHost(): FakeHost {
  const left = new Map<Signal, number>(Object.entries(whole) as [Signal, number][])
  const hidden = new Map<Signal, string>()
  let stalls: readonly Stall[] = []
  let apart: boolean | undefined = false
  return {
    stall(signal, percent) {
      stalls = [...stalls.filter((one) => one.signal !== signal), { signal, percent }]
    },
    separateImages() {
      apart = true
    },
    hideImages() {
      apart = undefined
    },
    leave: (signal, available) => void left.set(signal, available),
    hide: (signal, because) => void hidden.set(signal, because),
    show: () => hidden.clear(),
    async observe(): Promise<Observations> {
      const observed: Observation[] = [...left]
        .filter(([signal]) => !hidden.has(signal))
        .map(([signal, available]) => ({ signal, available, capacity: whole[signal] }))
      const unread = [...hidden].map(([signal, because]) => ({ signal, because }))
      return { observed, unread, stalls, imagesApart: apart }
    },
  }
}
