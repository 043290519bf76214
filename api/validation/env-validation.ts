/** Validates the sources of a container's variables and of a volume's files. */
import { dataKeyProblem, dnsSubdomainProblem, environmentNameProblem, labelKeyProblem } from '../names.ts'
import type { Container, EnvVar } from '../pod.ts'
import { invalid, notSupported, type Problem, required } from '../problem.ts'
import { problemsWith } from './metadata-validation.ts'

export function envProblems(field: string, { env = [], envFrom = [] }: Container): readonly Problem[] {
  return [
    ...env.flatMap((variable, index) => variableProblems(`${field}.env[${index}]`, variable)),
    ...envFrom.flatMap(({ prefix = '', configMapRef, secretRef }, index) => {
      const at = `${field}.envFrom[${index}]`
      const given = [configMapRef, secretRef].filter((ref) => ref !== undefined).length
      return [
        ...(prefix === '' ? [] : problemsWith(`${at}.prefix`, prefix, environmentNameProblem)),
        ...oneSource(at, given, '`configMapRef` or `secretRef`'),
        ...(configMapRef ? objectNameProblems(`${at}.configMapRef.name`, configMapRef.name) : []),
        ...(secretRef ? objectNameProblems(`${at}.secretRef.name`, secretRef.name) : []),
      ]
    }),
  ]
}

function variableProblems(field: string, { name, value = '', valueFrom }: EnvVar): readonly Problem[] {
  const named = name === '' ? [required(`${field}.name`)] : problemsWith(`${field}.name`, name, environmentNameProblem)
  if (valueFrom === undefined) return named
  const at = `${field}.valueFrom`
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef } = valueFrom
  const given = [fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef].filter((ref) => ref !== undefined).length
  return [
    ...named,
    ...(value === '' ? [] : [invalid(at, '', 'may not be specified when `value` is not empty')]),
    ...oneSource(at, given, '`fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`'),
    ...(fieldRef ? fieldRefProblems(`${at}.fieldRef`, fieldRef, ofVariables) : []),
    ...(resourceFieldRef ? resourceProblems(`${at}.resourceFieldRef.resource`, resourceFieldRef.resource) : []),
    ...(configMapKeyRef ? keyRefProblems(`${at}.configMapKeyRef`, configMapKeyRef) : []),
    ...(secretKeyRef ? keyRefProblems(`${at}.secretKeyRef`, secretKeyRef) : []),
  ]
}

function keyRefProblems(field: string, { name, key }: { readonly name?: string; readonly key: string }) {
  return [
    ...objectNameProblems(`${field}.name`, name),
    ...(key === '' ? [required(`${field}.key`)] : problemsWith(`${field}.key`, key, dataKeyProblem)),
  ]
}

export function objectNameProblems(field: string, name = ''): readonly Problem[] {
  return name === '' ? [required(field)] : problemsWith(field, name, dnsSubdomainProblem)
}

const ofFiles = ['metadata.name', 'metadata.namespace', 'metadata.uid', 'metadata.labels', 'metadata.annotations']
const ofVariables = [
  ...['metadata.name', 'metadata.namespace', 'metadata.uid', 'spec.nodeName', 'spec.serviceAccountName'],
  ...['status.hostIP', 'status.hostIPs', 'status.podIP', 'status.podIPs'],
]

type FieldRef = { readonly apiVersion?: string; readonly fieldPath: string }

export function fileFieldProblems(at: string, ref: FieldRef): readonly Problem[] {
  return fieldRefProblems(at, ref, ofFiles)
}

/** An empty version is that of the pod (SetDefaults_ObjectFieldSelector). */
function fieldRefProblems(
  at: string,
  { apiVersion = '', fieldPath: path }: FieldRef,
  known: readonly string[],
): readonly Problem[] {
  const field = `${at}.fieldPath`
  if (path === '') return [required(field)]
  if (apiVersion !== '' && apiVersion !== 'v1') {
    return [invalid(field, path, `error converting fieldPath: unsupported pod version: ${apiVersion}`)]
  }
  const [, key] = /^metadata\.(?:labels|annotations)\['(.*)'\]$/.exec(path) ?? []
  if (key !== undefined) return problemsWith(field, key, labelKeyProblem)
  return known.includes(path) ? [] : [notSupported(field, path, known)]
}

const resources = ['cpu', 'memory', 'ephemeral-storage'].flatMap((name) => [`limits.${name}`, `requests.${name}`])

export function resourceProblems(field: string, resource: string): readonly Problem[] {
  if (resource === '') return [required(field)]
  const known = resources.includes(resource) || /^(limits|requests)\.hugepages-.+/.test(resource)
  return known ? [] : [notSupported(field, resource, resources)]
}

function oneSource(field: string, given: number, choices: string): readonly Problem[] {
  if (given === 1) return []
  const detail =
    given === 0 ? `must specify one of: ${choices}` : 'may not have more than one field specified at a time'
  return [invalid(field, '', detail)]
}
