/** The eviction signals: amounts available on the machine, and the interface that reads them. */

export const signals = [
  'memory.available',
  'nodefs.available',
  'nodefs.inodesFree',
  'imagefs.available',
  'imagefs.inodesFree',
  'pid.available',
] as const
export type Signal = (typeof signals)[number]

/** Bytes, inodes or processes. Percentages refer to `capacity`. */
export type Observation = { readonly signal: Signal; readonly available: number; readonly capacity: number }

export const stallSignals = ['memory.some', 'memory.full', 'io.some', 'io.full', 'cpu.some'] as const
export type StallSignal = (typeof stallSignals)[number]

/** The share of the last ten seconds, in percent, in which some or all tasks waited for the resource. */
export type Stall = { readonly signal: StallSignal; readonly percent: number }

export type Observations = {
  readonly observed: readonly Observation[]
  /** Signals that could not be read, with the reason. A signal that was not observed never causes pressure. */
  readonly unread: readonly { readonly signal: Signal; readonly because: string }[]
  /** Empty where the kernel does not report stalls. */
  readonly stalls: readonly Stall[]
  /**
   * Images and containers' layers are on another filesystem than the agent's data. Undefined while unknown: Docker has not
   * reported its directory, or the filesystem of that directory does not answer.
   */
  readonly imagesApart: boolean | undefined
}

/** Reads the signals. Cheap enough for every second; starts no process. */
export interface SignalSource {
  observe(): Promise<Observations>
}
