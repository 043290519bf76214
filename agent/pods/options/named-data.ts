/** The ConfigMaps and Secrets a pod names, as last received; or an error in Kubernetes' words. */
import type { ConfigMap } from '../../../api/config-map.ts'
import type { Pod } from '../../../api/pod.ts'
import type { Secret } from '../../../api/secret.ts'

export type NamedSources = { readonly configMaps: readonly ConfigMap[]; readonly secrets: readonly Secret[] }

/** A value, none (it is optional), or what is missing. */
export type Found<T> = { readonly value: T | undefined } | { readonly missing: string }

export type Reference = { readonly name?: string; readonly optional?: boolean }

/** Contents by key. */
export type Contents = ReadonlyMap<string, Buffer>

/** Only the part that is text: the other cannot be a variable's value. */
export function configMapTexts(pod: Pod, sources: NamedSources, ref: Reference): Found<Contents> {
  return configMapOf(pod, sources, ref, ({ data = {} }) => entries(data, 'utf8'))
}

export function configMapContents(pod: Pod, sources: NamedSources, ref: Reference): Found<Contents> {
  return configMapOf(
    pod,
    sources,
    ref,
    ({ data = {}, binaryData = {} }) => new Map([...entries(data, 'utf8'), ...entries(binaryData, 'base64')]),
  )
}

export function secretContents(pod: Pod, { secrets }: NamedSources, { name, optional }: Reference): Found<Contents> {
  const found = secrets.find((secret) => isNamed(secret, pod, name))
  if (found !== undefined) return { value: entries(found.data ?? {}, 'base64') }
  return optional ? { value: undefined } : { missing: `secret "${name ?? ''}" not found` }
}

/** The Secret itself, with its type. */
export function secretNamed(
  pod: Pod,
  { secrets }: Pick<NamedSources, 'secrets'>,
  name: string | undefined,
): Secret | undefined {
  return secrets.find((secret) => isNamed(secret, pod, name))
}

function configMapOf(
  pod: Pod,
  { configMaps }: NamedSources,
  { name, optional }: Reference,
  contents: (found: ConfigMap) => Contents,
): Found<Contents> {
  const found = configMaps.find((map) => isNamed(map, pod, name))
  if (found !== undefined) return { value: contents(found) }
  return optional ? { value: undefined } : { missing: `configmap "${name ?? ''}" not found` }
}

function entries(data: { readonly [key: string]: string }, encoding: 'utf8' | 'base64'): Contents {
  return new Map(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, encoding)]))
}

function isNamed({ metadata }: ConfigMap | Secret, pod: Pod, name = ''): boolean {
  return metadata.name === name && (metadata.namespace ?? 'default') === (pod.metadata.namespace ?? 'default')
}
