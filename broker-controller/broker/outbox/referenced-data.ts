/** The ConfigMaps and Secrets that a pod refers to. Its node receives those, and no others. */
import type { ConfigMap } from '../../../api/config-map.ts'
import type { Container, Pod } from '../../../api/pod.ts'
import type { Secret } from '../../../api/secret.ts'
import { keyText } from '../../store/informer.ts'
import type { StoredObject } from '../../store/store.ts'
import { nodesUsing } from './nodes-using.ts'

/** Keys as `namespace/name`, in a stable order. */
export type ReferencedData = { readonly configMaps: readonly string[]; readonly secrets: readonly string[] }

export function referencedData(pods: Iterable<Pod>): ReferencedData {
  const configMaps = new Set<string>()
  const secrets = new Set<string>()
  for (const { metadata, spec } of pods) {
    const { namespace } = metadata
    const add = (keys: Set<string>, name: string | undefined) => {
      if (name) keys.add(keyText({ ...(namespace !== undefined && { namespace }), name }))
    }
    for (const { envFrom = [], env = [] } of containersOf({ spec })) {
      for (const { configMapRef, secretRef } of envFrom) {
        add(configMaps, configMapRef?.name)
        add(secrets, secretRef?.name)
      }
      for (const { valueFrom } of env) {
        add(configMaps, valueFrom?.configMapKeyRef?.name)
        add(secrets, valueFrom?.secretKeyRef?.name)
      }
    }
    for (const { configMap, secret, projected } of spec.volumes ?? []) {
      add(configMaps, configMap?.name)
      add(secrets, secret?.secretName)
      for (const source of projected?.sources ?? []) {
        add(configMaps, source.configMap?.name)
        add(secrets, source.secret?.name)
      }
    }
    for (const { name } of spec.imagePullSecrets ?? []) add(secrets, name)
  }
  return { configMaps: [...configMaps].sort(), secrets: [...secrets].sort() }
}

function containersOf({ spec }: Pick<Pod, 'spec'>): readonly Pick<Container, 'env' | 'envFrom'>[] {
  return [...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])]
}

/** The fields that a node needs. Not the version: the node compares contents. The same object for each node. */
export const projectConfigMap = onceForEach(
  ({ apiVersion, kind, metadata, data, binaryData }: StoredObject<'configmaps'>): ConfigMap => ({
    ...{ apiVersion, kind, metadata: nameOf(metadata) },
    ...(data && { data }),
    ...(binaryData && { binaryData }),
  }),
)

export const projectSecret = onceForEach(
  ({ apiVersion, kind, metadata, type, data }: StoredObject<'secrets'>): Secret => ({
    ...{ apiVersion, kind, metadata: nameOf(metadata) },
    ...(type !== undefined && { type }),
    ...(data && { data }),
  }),
)

/** Objects of the store are never changed in place. */
function onceForEach<From extends object, To>(project: (source: From) => To): (source: From) => To {
  const known = new WeakMap<From, To>()
  return (source) => {
    const projected = known.get(source) ?? project(source)
    known.set(source, projected)
    return projected
  }
}

function nameOf({ name, namespace }: { readonly name: string; readonly namespace?: string }) {
  return { name, ...(namespace !== undefined && { namespace }) }
}

export interface ReferencedDataIndex {
  /** Takes in a change of a pod. */
  update(present: Pod | undefined, previous: Pod | undefined): void
  /** The nodes with a pod that refers to it. */
  nodesReferencing(kind: keyof ReferencedData, key: string): readonly string[]
}

/** The caller passes every change of a pod to `update`. */
export function referencedDataIndex(): ReferencedDataIndex {
  const counts = nodesUsing()
  const count = (pod: Pod | undefined, by: 1 | -1) => {
    const node = pod?.spec.nodeName
    if (pod === undefined || !node) return
    const { configMaps, secrets } = referencedData([pod])
    for (const key of configMaps) counts.add(idOf('configMaps', key), node, by)
    for (const key of secrets) counts.add(idOf('secrets', key), node, by)
  }
  return {
    update(present, previous) {
      count(previous, -1)
      count(present, 1)
    },
    nodesReferencing: (kind, key) => counts.nodesOf(idOf(kind, key)),
  }
}

function idOf(kind: keyof ReferencedData, key: string): string {
  return `${kind} ${key}`
}
