/** The controller takes a release before the nodes: an agent works with a newer controller, which may need to read what it reports. */

export type RunningController = {
  readonly version: string
  /** It runs, and it may be taken back. */
  readonly isOnTrial: boolean
}

/** Why no node may take the release yet. Undefined: the release of the controller is committed, or the rollout has none. */
export function waitForController(
  wanted: Pick<RunningController, 'version'> | undefined,
  { version, isOnTrial }: RunningController,
): string | undefined {
  if (wanted === undefined) return undefined
  if (version !== wanted.version)
    return `The controller comes first: it runs ${version}. Install ${wanted.version} with bramble-controller-update, or start the rollout with --agents-only`
  return isOnTrial ? `The controller comes first: its version ${version} is on trial` : undefined
}
