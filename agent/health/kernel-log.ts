/** What parts of the agent need of the kernel's log: what the kernel itself says, as it comes. Programs may write there, too: not heard. */

export type KernelLine = {
  readonly text: string
  /** How long ago it was written. Lines from before the agent's start are told too: judge them by this. */
  readonly ageMs: number
}

export interface KernelLog {
  /** Every line from now on, and with the first look those the kernel still has. Subscribe before it runs. */
  subscribe(listener: (line: KernelLine) => void): void
  /** Tells what was written until this moment, now. */
  look(): void
  /** False: this machine does not let us read it, or nobody has looked yet. */
  readable(): boolean
}
