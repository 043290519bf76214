/** The interface of sessions to the container engine. `agent/adapters/docker/container-streams.ts` implements it on Docker. */

export type LogOptions = {
  readonly follow: boolean
  /** Each line begins with its time (RFC 3339 with nanoseconds) and a blank. */
  readonly timestamps: boolean
  /** undefined: all lines. */
  readonly tailLines: number | undefined
  /** Seconds since 1970, with a fraction; undefined: from the beginning. */
  readonly since: string | undefined
}

export type TerminalOptions = {
  readonly stdin: boolean
  readonly stdout: boolean
  readonly stderr: boolean
  readonly tty: boolean
}

/** A process in a container with its standard streams. It ends with `signal`. */
export interface EngineProcess {
  /** Resolves when the process can be given more. */
  write(input: Uint8Array): Promise<void>
  /** The end of its standard input. */
  endInput(): void
  readonly output: AsyncIterable<{ readonly stream: 'stdout' | 'stderr'; readonly bytes: Uint8Array }>
  resize(width: number, height: number): Promise<void>
  /** After its output has ended; undefined where it is not ours to see. */
  exitCode(): Promise<number | undefined>
  /** Resolves when what `signal` caused is done, or after a few seconds: a command is killed. */
  stopped(): Promise<void>
}

export interface EngineStreams {
  /** The first process of a container that runs. Rejects with a RuntimeError. */
  processOf(id: string): Promise<number>
  /** Starts a command in a container. One that cannot be started writes why, and exits with 126 or 127. */
  exec(
    id: string,
    options: TerminalOptions & { readonly command: readonly string[] },
    signal: AbortSignal,
  ): Promise<EngineProcess>
  /** The first process of a container, which keeps running when the session ends. `tty` is the container's own. */
  attach(id: string, options: TerminalOptions, signal: AbortSignal): Promise<EngineProcess>
  /**
   * What a container wrote, standard output and error in the order of the engine; with `follow` until it ends. Nothing is
   * read that was not taken, so a reader that stops holds one piece. Resolves when the engine has begun; rejects, as the
   * iteration does, with a RuntimeError.
   */
  log(id: string, options: LogOptions, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>
}
