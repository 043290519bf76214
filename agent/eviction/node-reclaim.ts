/** Frees disk space before a pod is evicted. */

export interface NodeReclaim {
  /** Removes stopped containers that no pod needs. */
  deleteUnusedContainers(signal: AbortSignal): Promise<void>
  /** Removes every image that no container uses. `freedBytes` is the sum of the sizes that the engine reports. */
  deleteUnusedImages(signal: AbortSignal): Promise<{ readonly freedBytes: number }>
}
