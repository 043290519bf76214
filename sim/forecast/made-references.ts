/** Secrets and ConfigMaps that pods name and that a simulation does not have: they are made, so that the pods start. */
import type { AnyObject } from '../../api/meta.ts'
import { configMapsOf, secretsOf } from '../../api/pod/pod-references.ts'
import type { PodSpec } from '../../api/pod.ts'
import { isObject } from '../../api/text/json.ts'

export type ReferenceKind = 'Secret' | 'ConfigMap'
export type MadeReference = {
  readonly kind: ReferenceKind
  readonly namespace: string
  readonly name: string
  /** Those that pods name. */
  readonly keys: readonly string[]
}

/** What the pods of these objects name. */
export function referencesIn(objects: readonly AnyObject[]): readonly MadeReference[] {
  const found = new Map<string, { readonly reference: Omit<MadeReference, 'keys'>; readonly keys: Set<string> }>()
  const add = (kind: ReferenceKind, namespace: string, name: string, keys: readonly string[]) => {
    const id = `${kind} ${namespace}/${name}`
    const entry = found.get(id) ?? { reference: { kind, namespace, name }, keys: new Set<string>() }
    found.set(id, entry)
    for (const key of keys) entry.keys.add(key)
  }
  for (const object of objects) {
    const spec = podSpecOf(object)
    if (spec === undefined) continue
    const { namespace = 'default' } = object.metadata
    for (const name of secretsOf({ spec })) add('Secret', namespace, name, [])
    for (const name of configMapsOf({ spec })) add('ConfigMap', namespace, name, [])
    for (const { kind, name, keys } of keysIn(spec)) add(kind, namespace, name, keys)
  }
  return [...found.values()].map(({ reference, keys }) => ({ ...reference, keys: [...keys].sort() }))
}

export function madeObject({ kind, namespace, name, keys }: MadeReference): AnyObject {
  const value = kind === 'Secret' ? Buffer.from('simulated').toString('base64') : 'simulated'
  const data = Object.fromEntries(keys.map((key) => [key, value]))
  const made = { apiVersion: 'v1', kind, metadata: { namespace, name }, data }
  return made
}

/** The specification of the pods that the object is, or makes. */
export function podSpecOf({ kind, spec }: AnyObject): PodSpec | undefined {
  const template = kind === 'CronJob' ? at(spec, 'jobTemplate', 'spec', 'template') : at(spec, 'template')
  const found = kind === 'Pod' ? spec : at(template, 'spec')
  return isObject(found) && Array.isArray(found['containers']) ? (found as unknown as PodSpec) : undefined
}

function at(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((part, name) => (isObject(part) ? part[name] : undefined), value)
}

type Keys = { readonly kind: ReferenceKind; readonly name: string; readonly keys: readonly string[] }

function keysIn({ containers, initContainers = [], volumes = [] }: PodSpec): readonly Keys[] {
  const variables = [...containers, ...initContainers].flatMap(({ env = [] }) => env.map(({ valueFrom }) => valueFrom))
  const sources = volumes.flatMap(({ projected }) => projected?.sources ?? [])
  const secrets = [
    ...variables.map((from) => ({ name: from?.secretKeyRef?.name, keys: [from?.secretKeyRef?.key] })),
    ...volumes.map(({ secret }) => ({ name: secret?.secretName, keys: secret?.items?.map(({ key }) => key) ?? [] })),
    ...sources.map(({ secret }) => ({ name: secret?.name, keys: secret?.items?.map(({ key }) => key) ?? [] })),
  ]
  const maps = [
    ...variables.map((from) => ({ name: from?.configMapKeyRef?.name, keys: [from?.configMapKeyRef?.key] })),
    ...[...volumes, ...sources].map(({ configMap }) => ({
      name: configMap?.name,
      keys: configMap?.items?.map(({ key }) => key) ?? [],
    })),
  ]
  return [
    ...secrets.map((one) => ({ kind: 'Secret' as const, ...one })),
    ...maps.map((one) => ({ kind: 'ConfigMap' as const, ...one })),
  ].flatMap(({ kind, name, keys }) =>
    name === undefined ? [] : [{ kind, name, keys: keys.filter((key) => key !== undefined) }],
  )
}
