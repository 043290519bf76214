/** What parts of the agent need of the kernel's log: the kernel's own lines, as they come. Lines that programs write there are ignored. */

export type KernelLine = {
  readonly text: string
  /** How long ago it was written. Lines from before the agent's start come too: judge them by this. */
  readonly ageMs: number
}

export interface KernelLog {
  /** Every line from now on, and with the first look those the kernel still has. Subscribe before it runs. */
  subscribe(listener: (line: KernelLine) => void): void
  /** Emits what was written until now. */
  look(): void
  /** False: this machine does not let the agent read it, or it has not been read yet. */
  readable(): boolean
}
