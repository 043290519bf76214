/** The controllers that share a store: each one writes down how it is reached, and what its forwarded requests show. */

export type ControllerAddress = {
  /** `https://HOST:PORT` of its API, as other machines reach it. Names the controller. */
  readonly apiServer: string
  /** `mqtts://HOST:PORT`, where it listens while it leads. */
  readonly mqttServer: string
  /** The hosts of its server certificate. */
  readonly hosts: readonly string[]
  /** SHA-256 of the certificate that its forwarded requests show, hexadecimal. */
  readonly proxyCertificate: string
  /** Version of the program. */
  readonly version: string
}

export interface ControllerRegistry {
  /**
   * Writes the address of this controller, and keeps it. One that was away for a day is left out. Rejects with ApiError Timeout or
   * ServiceUnavailable where the store does not answer.
   */
  register(self: ControllerAddress): Promise<void>
  /** Removes the address of this controller, which is not written again. Rejects as `register` does. */
  withdraw(): Promise<void>
  /** As far as they are read, by the name of their API. */
  all(): readonly ControllerAddress[]
  /** Reads them now. Rejects where the store cannot be reached. */
  refresh(): Promise<void>
  /** Called after each change. */
  onChange(listener: () => void): void
  /** Reads them every few seconds. */
  run(signal: AbortSignal): Promise<void>
}
