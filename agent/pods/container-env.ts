/** The environment of a container: values, expansions, and what the pod, its ConfigMaps and its Secrets say. */
import type { ConfigMap } from '../../api/config-map.ts'
import type { Container, EnvVar, Pod } from '../../api/pod.ts'
import type { Secret } from '../../api/secret.ts'
import { expand } from './expansion.ts'

/** What values may refer to. */
export type EnvSources = {
  readonly hostIP: string | undefined
  readonly podIP: string | undefined
  readonly configMaps: readonly ConfigMap[]
  readonly secrets: readonly Secret[]
}

export type Environment =
  | { readonly ok: true; readonly values: ReadonlyMap<string, string> }
  /** What is missing, in the words of CreateContainerConfigError. */
  | { readonly ok: false; readonly message: string }

/** A value, none (it is optional), or what is missing. */
type Found<T> = { readonly value: T | undefined } | { readonly missing: string }
type Data = ReadonlyMap<string, string>

/** In order: whole ConfigMaps and Secrets first, then single variables, each seeing those before it. */
export function containerEnv(pod: Pod, container: Container, sources: EnvSources): Environment {
  const values = new Map<string, string>()
  for (const { prefix = '', configMapRef, secretRef } of container.envFrom ?? []) {
    const data = configMapRef ? configMapData(pod, sources, configMapRef) : secretData(pod, sources, secretRef ?? {})
    if ('missing' in data) return { ok: false, message: data.missing }
    for (const [name, value] of data.value ?? []) values.set(`${prefix}${name}`, value)
  }
  for (const variable of container.env ?? []) {
    const found = variableValue(pod, variable, sources, values)
    if ('missing' in found) return { ok: false, message: found.missing }
    if (found.value !== undefined) values.set(variable.name, found.value)
  }
  return { ok: true, values }
}

function variableValue(pod: Pod, variable: EnvVar, sources: EnvSources, before: Data): Found<string> {
  const { name, value, valueFrom } = variable
  if (valueFrom === undefined) return { value: expand(value ?? '', before) }
  const { fieldRef, configMapKeyRef, secretKeyRef } = valueFrom
  if (fieldRef !== undefined) return fieldValue(pod, fieldRef.fieldPath, sources)
  if (configMapKeyRef !== undefined) {
    return keyOf(pod, 'ConfigMap', configMapKeyRef, configMapData(pod, sources, configMapKeyRef))
  }
  if (secretKeyRef !== undefined) return keyOf(pod, 'Secret', secretKeyRef, secretData(pod, sources, secretKeyRef))
  return { missing: `environment variable ${name} takes its value from what is not supported` }
}

type Reference = { readonly name?: string; readonly optional?: boolean }

function keyOf(pod: Pod, kind: string, ref: Reference & { readonly key: string }, data: Found<Data>): Found<string> {
  if ('missing' in data) return data
  const value = data.value?.get(ref.key)
  if (value !== undefined || ref.optional) return { value }
  return { missing: `couldn't find key ${ref.key} in ${kind} ${pod.metadata.namespace ?? 'default'}/${ref.name ?? ''}` }
}

function configMapData(pod: Pod, { configMaps }: EnvSources, { name, optional }: Reference): Found<Data> {
  const found = configMaps.find((map) => isNamed(map, pod, name))
  if (found !== undefined) return { value: new Map(Object.entries(found.data ?? {})) }
  return optional ? { value: undefined } : { missing: `configmap "${name ?? ''}" not found` }
}

function secretData(pod: Pod, { secrets }: EnvSources, { name, optional }: Reference): Found<Data> {
  const found = secrets.find((secret) => isNamed(secret, pod, name))
  if (found === undefined) return optional ? { value: undefined } : { missing: `secret "${name ?? ''}" not found` }
  const decoded = Object.entries(found.data ?? {}).map(
    ([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')] as const,
  )
  return { value: new Map(decoded) }
}

function isNamed({ metadata }: ConfigMap | Secret, pod: Pod, name = ''): boolean {
  return metadata.name === name && (metadata.namespace ?? 'default') === (pod.metadata.namespace ?? 'default')
}

/** The downward API's fields that a variable may carry. */
function fieldValue({ metadata, spec }: Pod, path: string, { hostIP, podIP }: EnvSources): Found<string> {
  const keyed = /^metadata\.(labels|annotations)\['(.*)'\]$/.exec(path)
  if (keyed !== null) {
    return { value: metadata[keyed[1] === 'labels' ? 'labels' : 'annotations']?.[keyed[2] ?? ''] ?? '' }
  }
  const ownIP = spec.hostNetwork ? hostIP : podIP
  const fields: { readonly [path: string]: string | undefined } = {
    'metadata.name': metadata.name,
    'metadata.namespace': metadata.namespace ?? 'default',
    'metadata.uid': metadata.uid,
    'spec.nodeName': spec.nodeName,
    'spec.serviceAccountName': spec.serviceAccountName,
    'status.hostIP': hostIP,
    'status.hostIPs': hostIP,
    'status.podIP': ownIP,
    'status.podIPs': ownIP,
  }
  return path in fields ? { value: fields[path] ?? '' } : { missing: `unsupported fieldPath: ${path}` }
}
