/** Frees disk space before a pod is evicted. */

export interface NodeReclaim {
  /** Removes stopped containers that no pod needs. */
  deleteUnusedContainers(signal: AbortSignal): Promise<void>
  /**
   * Removes every image that no container uses; those that no registry has only if `isEnough` resolves to false after the others.
   * `freedBytes` is the sum of the sizes that the engine reports.
   */
  deleteUnusedImages(signal: AbortSignal, isEnough: () => Promise<boolean>): Promise<{ readonly freedBytes: number }>
}
