/** The ConfigMaps and Secrets that a pod refers to. Its node receives those, and no others. */
import type { ConfigMap } from '../../../api/config-map.ts'
import { contentProofAnnotation } from '../../../api/node/node-checkpoint.ts'
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
    const adderTo = (keys: Set<string>) => (name: string | undefined) => {
      if (name) keys.add(keyText({ ...(namespace !== undefined && { namespace }), name }))
    }
    const add = { configMap: adderTo(configMaps), secret: adderTo(secrets) }
    for (const container of containersOf({ spec })) addOfContainer(container, add)
    for (const volume of spec.volumes ?? []) addOfVolume(volume, add)
    for (const { name } of spec.imagePullSecrets ?? []) add.secret(name)
  }
  return { configMaps: [...configMaps].sort(), secrets: [...secrets].sort() }
}

type Add = Readonly<Record<'configMap' | 'secret', (name: string | undefined) => void>>
type PodVolume = NonNullable<Pod['spec']['volumes']>[number]

function addOfContainer({ envFrom = [], env = [] }: ReturnType<typeof containersOf>[number], add: Add): void {
  for (const { configMapRef, secretRef } of envFrom) {
    add.configMap(configMapRef?.name)
    add.secret(secretRef?.name)
  }
  for (const { valueFrom } of env) {
    add.configMap(valueFrom?.configMapKeyRef?.name)
    add.secret(valueFrom?.secretKeyRef?.name)
  }
}

function addOfVolume({ configMap, secret, projected, csi }: PodVolume, add: Add): void {
  add.configMap(configMap?.name)
  add.secret(secret?.secretName)
  add.secret(csi?.nodePublishSecretRef?.name)
  for (const source of projected?.sources ?? []) {
    add.configMap(source.configMap?.name)
    add.secret(source.secret?.name)
  }
}

function containersOf({ spec }: Pick<Pod, 'spec'>): readonly Pick<Container, 'env' | 'envFrom'>[] {
  return [...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])]
}

/**
 * The fields that a node needs. Not the version: the node compares contents. The same object for each node, with the same proof: see
 * `ContentProver`.
 */
export const projectConfigMap = onceForEach(
  ({ apiVersion, kind, metadata, data, binaryData }: StoredObject<'configmaps'>, proof): ConfigMap => ({
    ...{ apiVersion, kind, metadata: metadataOf(metadata, proof) },
    ...(data && { data }),
    ...(binaryData && { binaryData }),
  }),
)

export const projectSecret = onceForEach(
  ({ apiVersion, kind, metadata, type, data }: StoredObject<'secrets'>, proof): Secret => ({
    ...{ apiVersion, kind, metadata: metadataOf(metadata, proof) },
    ...(type !== undefined && { type }),
    ...(data && { data }),
  }),
)

/** Objects of the store are never changed in place. */
function onceForEach<From extends object, To>(
  project: (source: From, proof: string | undefined) => To,
): (source: From, proof?: string) => To {
  const known = new WeakMap<From, { readonly proof: string | undefined; readonly projected: To }>()
  return (source, proof) => {
    const before = known.get(source)
    if (before !== undefined && before.proof === proof) return before.projected
    const projected = project(source, proof)
    known.set(source, { proof, projected })
    return projected
  }
}

function metadataOf({ name, namespace }: { readonly name: string; readonly namespace?: string }, proof?: string) {
  const annotations = proof !== undefined && { annotations: { [contentProofAnnotation]: proof } }
  return { name, ...(namespace !== undefined && { namespace }), ...annotations }
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
