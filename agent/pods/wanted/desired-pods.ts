/** The pods that the control plane desires on this node. */
import { isDeepStrictEqual } from 'node:util'
import type { Desired, Misread } from '../../../api/desired.ts'
import type { ObjectMeta } from '../../../api/meta.ts'
import { configMapsOf, secretsOf } from '../../../api/pod/pod-references.ts'
import { configSourceAnnotation, isMirrorPod, isStaticPod, mirroredHash } from '../../../api/pod/static-pod.ts'
import type { Pod } from '../../../api/pod.ts'
import type { NodeClaim, NodeCsiDriver } from '../../../api/storage/node-claim.ts'
import { claimsOfPod } from '../../../api/storage/pod-claims.ts'

/**
 * A message contains the complete desired state. Within one epoch of the controller an older version is ignored. A new epoch is
 * always newer, even without pods: the controller may have been reinstalled.
 */
export function isNewer(known: Desired | undefined, message: Desired): boolean {
  return known === undefined || known.epoch !== message.epoch || known.version < message.version
}

/** It is the message that is known already. */
export function isSame(known: Desired | undefined, message: Desired): boolean {
  return known?.epoch === message.epoch && known.version === message.version
}

/** Objects that cannot be decoded keep their previous version: no pod is stopped for an unknown field value. */
export function withKnown(message: Desired, before: Desired | undefined): Desired {
  if (message.misread === undefined || before === undefined) return message
  const uids = (kind: Misread['kind']) =>
    new Set(message.misread?.flatMap((one) => (one.kind === kind ? [one.uid] : [])))
  const [pods, configMaps, secrets] = [uids('Pod'), uids('ConfigMap'), uids('Secret')]
  return {
    ...message,
    pods: [...message.pods, ...before.pods.filter(({ metadata }) => pods.has(metadata.uid ?? ''))],
    configMaps: [
      ...(message.configMaps ?? []),
      ...(before.configMaps ?? []).filter(({ metadata }) => configMaps.has(metadata.uid ?? '')),
    ],
    secrets: [
      ...(message.secrets ?? []),
      ...(before.secrets ?? []).filter(({ metadata }) => secrets.has(metadata.uid ?? '')),
    ],
  }
}

/** The pods to run, by UID. A pod without a UID or a name is skipped, and so is a mirror pod. */
function podsByUID({ pods }: Desired): ReadonlyMap<string, Pod> {
  return new Map(
    pods.flatMap((pod) => {
      const { uid, name } = pod.metadata
      return uid && name && !isMirrorPod(pod) ? [[uid, notOwn(pod)]] : []
    }),
  )
}

/** Readiness conditions of a static pod are written to its mirror pod. */
function withGates(pod: Pod, desired: Desired | undefined): Pod {
  if ((pod.spec.readinessGates ?? []).length === 0) return pod
  const status = desired?.pods.find((one) => mirroredHash(one) === pod.metadata.uid)?.status
  return status === undefined ? pod : { ...pod, status }
}

/** An annotation cannot turn a pod of the API into a static pod. */
function notOwn(pod: Pod): Pod {
  if (!isStaticPod(pod)) return pod
  const annotations = { ...pod.metadata.annotations, [configSourceAnnotation]: 'api' }
  return { ...pod, metadata: { ...pod.metadata, annotations } }
}

export function mirrorsIn({ pods }: Desired): readonly Pod[] {
  return pods.filter(isMirrorPod)
}

/**
 * All pods that may run on this node. A static pod waits until the last one of its name is removed, so that a changed file never
 * has two pods running. `here`: the pods on the machine, by UID, with namespace and name.
 */
export function wantedHere(
  desired: Desired | undefined,
  own: readonly Pod[],
  here: ReadonlyMap<string, string>,
): ReadonlyMap<string, Pod> {
  const placed: ReadonlyMap<string, Pod> = desired === undefined ? new Map() : podsByUID(desired)
  const isInTheWay = (pod: Pod) =>
    [...here].some(([uid, path]) => uid !== pod.metadata.uid && path === podPath(pod) && !placed.has(uid))
  const free = own.filter((pod) => !isInTheWay(pod))
  return new Map([...placed, ...free.map((pod): [string, Pod] => [pod.metadata.uid ?? '', withGates(pod, desired)])])
}

export function podPath({ metadata }: { readonly metadata: Pick<ObjectMeta, 'namespace' | 'name'> }): string {
  return `${metadata.namespace ?? 'default'}/${metadata.name ?? ''}`
}

/** UIDs of the pods that differ between the two, or refer to a ConfigMap, a Secret or a claim that does. */
export function changedPods(before: Desired | undefined, after: Desired): readonly string[] {
  if (before === undefined) return [...podsByUID(after).keys()]
  const [old, now] = [podsByUID(before), podsByUID(after)]
  const all = [...new Set([...old.keys(), ...now.keys()])]
  const configMaps = changedData(before.configMaps, after.configMaps)
  const secrets = changedData(before.secrets, after.secrets)
  const claims = changedData(dataOf(before.claims), dataOf(after.claims))
  const drivers = changedData(driverData(before.csiDrivers), driverData(after.csiDrivers))
  return all.filter((uid) => {
    const pod = now.get(uid)
    if (pod === undefined || !isDeepStrictEqual(old.get(uid), pod)) return true
    return (
      (configMaps.size > 0 && refersTo(configMaps, pod, configMapsOf(pod))) ||
      (secrets.size > 0 && refersTo(secrets, pod, secretsOf(pod))) ||
      (claims.size > 0 && refersTo(claims, pod, new Set(claimsOfPod(pod).map(({ name }) => name)))) ||
      (drivers.size > 0 && (pod.spec.volumes ?? []).some(({ csi }) => csi && drivers.has(driverPath(csi.driver))))
    )
  })
}

function dataOf(claims: readonly NodeClaim[] = []): readonly Data[] {
  return claims.map((claim) => ({ ...claim, metadata: { namespace: claim.namespace, name: claim.name } }))
}

function driverData(drivers: readonly NodeCsiDriver[] = []): readonly Data[] {
  return drivers.map((driver) => ({ ...driver, metadata: { name: driver.name } }))
}

function driverPath(name: string): string {
  return podPath({ metadata: { name } })
}

type Data = { readonly metadata: ObjectMeta }

/** Those that were added, removed or changed, as `namespace/name`. */
function changedData(before: readonly Data[] = [], after: readonly Data[] = []): ReadonlySet<string> {
  const old = new Map(before.map((one) => [podPath(one), one]))
  const now = new Map(after.map((one) => [podPath(one), one]))
  return new Set([...old.keys(), ...now.keys()].filter((path) => !isDeepStrictEqual(old.get(path), now.get(path))))
}

function refersTo(changed: ReadonlySet<string>, { metadata: { namespace } }: Pod, names: ReadonlySet<string>): boolean {
  return [...names].some((name) =>
    changed.has(podPath({ metadata: { name, ...(namespace !== undefined && { namespace }) } })),
  )
}
