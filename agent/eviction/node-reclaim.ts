/** What the node can do for itself when its disk runs low, before any pod has to go. */

export interface NodeReclaim {
  /** Removes containers that have ended and that no pod needs any more. */
  deleteUnusedContainers(signal: AbortSignal): Promise<void>
  /** Removes every image that no container uses; `freedBytes` by the sizes the engine gives. */
  deleteUnusedImages(signal: AbortSignal): Promise<{ readonly freedBytes: number }>
}
