/** What the control plane wants on this node, as last heard. */
import { isDeepStrictEqual } from 'node:util'
import type { Pod } from '../../api/pod.ts'
import type { DesiredMessage } from '../../api/topics.ts'

/**
 * A message is the whole of what is wanted. Within one epoch of the controller an older one is late and counts for
 * nothing; a new epoch is always news, even when it wants nothing: the controller may have been set up anew.
 */
export function isNews(known: DesiredMessage | undefined, message: DesiredMessage): boolean {
  return known === undefined || known.epoch !== message.epoch || known.version < message.version
}

/** The pods by UID. One without a UID or a name cannot be run. */
export function podsByUID({ pods }: DesiredMessage): ReadonlyMap<string, Pod> {
  return new Map(pods.flatMap((pod) => (pod.metadata.uid && pod.metadata.name ? [[pod.metadata.uid, pod]] : [])))
}

/** UIDs of the pods for which the two want something else, what they name included. */
export function changedPods(before: DesiredMessage | undefined, after: DesiredMessage): readonly string[] {
  if (before === undefined) return [...podsByUID(after).keys()]
  const [old, now] = [podsByUID(before), podsByUID(after)]
  const all = [...new Set([...old.keys(), ...now.keys()])]
  const sameData =
    isDeepStrictEqual(before.configMaps ?? [], after.configMaps ?? []) &&
    isDeepStrictEqual(before.secrets ?? [], after.secrets ?? [])
  return sameData ? all.filter((uid) => !isDeepStrictEqual(old.get(uid), now.get(uid))) : all
}
