/** The links and addresses that can carry traffic to the controller, and whether there are more than before. */

/**
 * What can carry traffic now, each as a short text: every interface that has a carrier, with the number of its carrier changes,
 * and every default route. A cable that was pulled and is plugged in again gives another text.
 */
export type NetworkState = ReadonlySet<string>

/** Whether a link or a default route is new. One that disappeared is not a reason to connect again. */
export function cameUp(before: NetworkState, now: NetworkState): boolean {
  return [...now].some((one) => !before.has(one))
}
