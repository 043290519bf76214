/** How a container ended that does not run again: what a plan and the pod's status need of it, in the checkpoint too. */
export type ContainerEnd = {
  readonly name: string
  readonly id: string
  readonly sandboxID?: string
  readonly specHash: string
  readonly attempt: number
  readonly image: string
  readonly imageID: string
  /** `created`: it could not be started, for the reason in `error`. */
  readonly state: 'exited' | 'created'
  readonly exitCode: number
  readonly oomKilled: boolean
  readonly error: string
  /** Its termination message. */
  readonly message: string
  readonly createdAt: string
  readonly startedAt?: string
  readonly finishedAt?: string
}
