/** What sessions need of the container engine. The one on Docker is `agent/adapters/docker/container-streams.ts`. */

export type LogOptions = {
  readonly follow: boolean
  /** Each line begins with its time (RFC 3339 with nanoseconds) and a blank. */
  readonly timestamps: boolean
  /** undefined: all lines. */
  readonly tailLines: number | undefined
  /** Seconds since 1970, with a fraction; undefined: from the beginning. */
  readonly since: string | undefined
}

export interface EngineStreams {
  /**
   * What a container wrote, standard output and error in the order of the engine; with `follow` until it ends. Nothing is
   * read that was not taken, so a reader that stops holds one piece. Resolves when the engine has begun; rejects, as the
   * iteration does, with a RuntimeError.
   */
  log(id: string, options: LogOptions, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>
}
