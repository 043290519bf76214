/** The environment of a container: values, expansions, and the fields of the pod, its ConfigMaps and its Secrets. */
import { isUtf8 } from 'node:buffer'
import { environmentNameProblem } from '../../../api/names.ts'
import { type ServiceLink, serviceVariables } from '../../../api/network/service-links.ts'
import type { Container, EnvVar, Pod } from '../../../api/pod.ts'
import { type DownwardSources, fieldValue, resourceValue } from './downward.ts'
import { expand } from './expansion.ts'
import {
  type Contents,
  configMapTexts,
  type Found,
  type NamedSources,
  type Reference,
  secretContents,
} from './named-data.ts'

/** What values may refer to. */
export type EnvSources = NamedSources &
  DownwardSources & {
    /** undefined: not known to this node. */
    readonly apiServer?: ApiServerLocation | undefined
    readonly services?: readonly ServiceLink[]
  }

/** Where a container reaches the Kubernetes API. */
export type ApiServerLocation = { readonly host: string; readonly port: number }

export type Environment =
  | { readonly ok: true; readonly values: ReadonlyMap<string, string> }
  /** What is missing, in the words of CreateContainerConfigError. */
  | { readonly ok: false; readonly message: string }

/**
 * In order: the Services of the namespace, the location of the API, which clients in a pod read (client-go, rest/config.go,
 * InClusterConfig), whole ConfigMaps and Secrets, then single variables, each seeing those before it.
 */
export function containerEnv(pod: Pod, container: Container, sources: EnvSources): Environment {
  const values = new Map([
    ...linkedServices(pod, sources).flatMap(serviceVariables),
    ...apiServerVariables(sources.apiServer),
  ])
  for (const source of container.envFrom ?? []) {
    const found = variablesFrom(pod, source, sources)
    if ('missing' in found) return { ok: false, message: found.missing }
    for (const [name, text] of found.value ?? []) values.set(name, text)
  }
  for (const variable of container.env ?? []) {
    const found = variableValue(pod, container, variable, sources, values)
    if ('missing' in found) return { ok: false, message: found.missing }
    if (found.value !== undefined) values.set(variable.name, found.value)
  }
  return { ok: true, values }
}

type EnvFromSource = NonNullable<Container['envFrom']>[number]

function variablesFrom(
  pod: Pod,
  { prefix = '', configMapRef, secretRef }: EnvFromSource,
  sources: EnvSources,
): Found<ReadonlyMap<string, string>> {
  const [kind, ref] = configMapRef ? (['ConfigMap', configMapRef] as const) : (['Secret', secretRef ?? {}] as const)
  const data = kind === 'ConfigMap' ? configMapTexts(pod, sources, ref) : secretContents(pod, sources, ref)
  if ('missing' in data) return data
  const values = new Map<string, string>()
  for (const [key, value] of data.value ?? []) {
    const name = `${prefix}${key}`
    // A key that cannot be a variable's name is left out (pkg/kubelet/kubelet_pods.go, makeEnvironmentVariables).
    if (environmentNameProblem(name) !== undefined) continue
    const text = textOf(pod, kind, { ...ref, key }, value)
    if ('missing' in text) return text
    values.set(name, text.value ?? '')
  }
  return { value: values }
}

function linkedServices({ metadata, spec }: Pod, { services = [] }: EnvSources): readonly ServiceLink[] {
  if (spec.enableServiceLinks === false) return []
  return services.filter(({ namespace }) => namespace === (metadata.namespace ?? 'default'))
}

function apiServerVariables(location: ApiServerLocation | undefined): readonly (readonly [string, string])[] {
  if (location === undefined) return []
  const port = String(location.port)
  return [
    ['KUBERNETES_SERVICE_HOST', location.host],
    ['KUBERNETES_SERVICE_PORT', port],
    ['KUBERNETES_SERVICE_PORT_HTTPS', port],
  ]
}

function variableValue(
  pod: Pod,
  container: Container,
  { name, value, valueFrom }: EnvVar,
  sources: EnvSources,
  before: ReadonlyMap<string, string>,
): Found<string> {
  if (valueFrom === undefined) {
    if (value?.includes('\0')) return { missing: `the value of environment variable ${name} has a NUL character` }
    return { value: expand(value ?? '', before) }
  }
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef } = valueFrom
  if (fieldRef !== undefined) return fieldOf(pod, name, fieldRef.fieldPath, sources)
  if (resourceFieldRef !== undefined) return resourceValue(pod, resourceFieldRef, container.name, sources)
  if (configMapKeyRef !== undefined) {
    return keyOf(pod, 'ConfigMap', configMapKeyRef, configMapTexts(pod, sources, configMapKeyRef))
  }
  if (secretKeyRef !== undefined) return keyOf(pod, 'Secret', secretKeyRef, secretContents(pod, sources, secretKeyRef))
  return { missing: `environment variable ${name} takes its value from what is not supported` }
}

/** An annotation may have any character. */
function fieldOf(pod: Pod, name: string, path: string, sources: DownwardSources): Found<string> {
  const found = fieldValue(pod, path, sources)
  if ('missing' in found || !found.value?.includes('\0')) return found
  return {
    missing: `${path} cannot be environment variable ${name}: its value has a NUL character; mount it as a file`,
  }
}

type KeyReference = Reference & { readonly key: string }

function keyOf(pod: Pod, kind: string, ref: KeyReference, data: Found<Contents>): Found<string> {
  if ('missing' in data) return data
  const value = data.value?.get(ref.key)
  if (value !== undefined) return textOf(pod, kind, ref, value)
  if (ref.optional) return { value: undefined }
  return { missing: `couldn't find key ${ref.key} in ${kind} ${pod.metadata.namespace ?? 'default'}/${ref.name ?? ''}` }
}

/**
 * The value as text. The kubelet passes bytes on unchanged; Docker takes the environment as JSON, whose texts are UTF-8, and the kernel ends a
 * variable at a NUL. Another value than that of the Secret must not be set in silence.
 */
function textOf(pod: Pod, kind: string, { name = '', key }: KeyReference, value: Buffer): Found<string> {
  const problem = !isUtf8(value)
    ? 'is not UTF-8 text, and Docker passes on text only'
    : value.includes(0)
      ? 'has a NUL byte'
      : undefined
  if (problem === undefined) return { value: value.toString('utf8') }
  const what = `key ${key} in ${kind} ${pod.metadata.namespace ?? 'default'}/${name}`
  return { missing: `${what} cannot be an environment variable: its value ${problem}; mount it as a file` }
}
