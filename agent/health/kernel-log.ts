/** The kernel's log: the lines of the kernel itself, in order. Lines that programs write there are ignored. */

export type KernelLine = {
  readonly text: string
  /** Age of the line. Lines from before the agent's start are delivered too and must be judged by their age. */
  readonly ageMs: number
}

export interface KernelLog {
  /** Receives every line from now on, and with the first read the lines that the kernel still holds. Subscribe before that. */
  subscribe(listener: (line: KernelLine) => void): void
  /** Reads the lines written until now and emits them. */
  look(): void
  /** False: the agent has no permission to read the log, or has not read it yet. */
  readable(): boolean
}
