/** What frees disk space before a pod is evicted. */

export interface NodeReclaim {
  /** Removes stopped containers that no pod needs. */
  deleteUnusedContainers(signal: AbortSignal): Promise<void>
  /** Removes every image that no container uses; `freedBytes` by the sizes the engine gives. */
  deleteUnusedImages(signal: AbortSignal): Promise<{ readonly freedBytes: number }>
}
