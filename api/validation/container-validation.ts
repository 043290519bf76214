/** Validates the containers of a pod. */

import { dnsLabelProblem, portNameProblem, qualifiedNameProblem } from '../names.ts'
import type { Container, ContainerPort, ResourceRequirements } from '../pod.ts'
import { duplicate, forbidden, invalid, notSupported, type Problem, required } from '../problem.ts'
import { compareQuantities, milliValue, zeroQuantity } from '../quantity.ts'
import { isIPAddress } from '../text/ip-address.ts'
import { envProblems } from './env-validation.ts'
import { problemsWith } from './metadata-validation.ts'
import { probeAndHookProblems } from './probe-validation.ts'
import { repeatedPlaces } from './repeated.ts'
import { notYet } from './unsupported-fields.ts'

export function containersProblems(
  field: string,
  containers: readonly Container[],
  hostNetwork: boolean,
  graceSeconds: number,
): readonly Problem[] {
  if (containers.length === 0) return [required(field)]
  const repeated = repeatedPlaces(containers.map(({ name }) => name))
  return [
    ...containers.flatMap((container, index) => [
      ...(repeated.has(index) ? [duplicate(`${field}[${index}].name`, container.name)] : []),
      ...containerProblems(`${field}[${index}]`, container, hostNetwork),
      ...probeAndHookProblems(`${field}[${index}]`, container, graceSeconds),
      ...(container.restartPolicy === undefined
        ? []
        : [forbidden(`${field}[${index}].restartPolicy`, 'may not be set for non-init containers')]),
    ]),
    ...hostPortProblems(field, containers),
  ]
}

/** Init containers share their names with the containers; only one that stays may be asked how it is. */
export function initContainersProblems(
  field: string,
  inits: readonly Container[],
  containers: readonly Container[],
  hostNetwork: boolean,
  graceSeconds: number,
): readonly Problem[] {
  const repeated = repeatedPlaces([...containers, ...inits].map(({ name }) => name))
  return inits.flatMap((container, index) => [
    ...(repeated.has(containers.length + index) ? [duplicate(`${field}[${index}].name`, container.name)] : []),
    ...containerProblems(`${field}[${index}]`, container, hostNetwork),
    ...hostPortProblems(field, inits.slice(index, index + 1), index),
    ...initProblems(`${field}[${index}]`, container, graceSeconds),
  ])
}

function initProblems(
  field: string,
  { restartPolicy, ...container }: Container,
  graceSeconds: number,
): readonly Problem[] {
  if (restartPolicy === 'Always') return probeAndHookProblems(field, container, graceSeconds)
  if (restartPolicy !== undefined) return [notSupported(`${field}.restartPolicy`, restartPolicy, ['Always'])]
  const lasting = (['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'] as const).filter(
    (name) => Object.keys(container[name] ?? {}).length > 0,
  )
  return lasting.map((name) =>
    forbidden(`${field}.${name}`, 'may not be set for init containers without restartPolicy=Always'),
  )
}

/** Problems of any container: init, ephemeral or regular. */
export function containerProblems(field: string, container: Container, hostNetwork: boolean): readonly Problem[] {
  const { name, image = '', imagePullPolicy = '', ports = [], resources = {} } = container
  return [
    ...(name === '' ? [required(`${field}.name`)] : problemsWith(`${field}.name`, name, dnsLabelProblem)),
    ...imageProblems(`${field}.image`, image),
    ...oneOfWords(`${field}.imagePullPolicy`, imagePullPolicy, ['Always', 'IfNotPresent', 'Never']),
    ...messagePathProblems(`${field}.terminationMessagePath`, container.terminationMessagePath ?? ''),
    ...oneOfWords(`${field}.terminationMessagePolicy`, container.terminationMessagePolicy ?? 'File', [
      'File',
      'FallbackToLogsOnError',
    ]),
    ...ports.flatMap((port, index) => portProblems(`${field}.ports[${index}]`, port, hostNetwork)),
    ...portNameRepeated(`${field}.ports`, ports),
    ...envProblems(field, container),
    ...requirementProblems(`${field}.resources`, resources),
  ]
}

export function imageProblems(field: string, image: string): readonly Problem[] {
  if (image === '') return [required(field)]
  return image === image.trim() ? [] : [invalid(field, image, 'must not have leading or trailing whitespace')]
}

export function oneOfWords(field: string, value: string, words: readonly string[]): readonly Problem[] {
  if (value === '') return [required(field)]
  return words.includes(value) ? [] : [notSupported(field, value, words)]
}

function portProblems(field: string, port: ContainerPort, hostNetwork: boolean): readonly Problem[] {
  const { name = '', containerPort, hostPort, protocol = '', hostIP = '' } = port
  const inRange = (value: number) => value >= 1 && value <= 65535
  const between = 'must be between 1 and 65535, inclusive'
  return [
    ...(name === '' ? [] : problemsWith(`${field}.name`, name, portNameProblem)),
    ...(containerPort === 0 ? [required(`${field}.containerPort`)] : []),
    ...(containerPort === 0 || inRange(containerPort)
      ? []
      : [invalid(`${field}.containerPort`, containerPort, between)]),
    ...(!hostPort || inRange(hostPort) ? [] : [invalid(`${field}.hostPort`, hostPort, between)]),
    ...(hostNetwork && hostPort && hostPort !== containerPort
      ? [invalid(`${field}.hostPort`, hostPort, 'must match `containerPort` when `hostNetwork` is true')]
      : []),
    ...oneOfWords(`${field}.protocol`, protocol, ['TCP', 'UDP', 'SCTP']),
    ...(hostIP === '' || isIPAddress(hostIP) ? [] : [invalid(`${field}.hostIP`, hostIP, 'must be a valid IP address')]),
  ]
}

function portNameRepeated(field: string, ports: readonly ContainerPort[]): readonly Problem[] {
  const names = ports.map(({ name }) => name)
  const repeated = repeatedPlaces(names)
  return names.flatMap((name, index) =>
    name && repeated.has(index) ? [duplicate(`${field}[${index}].name`, name)] : [],
  )
}

/** One port of the machine can serve one container only. Init containers run one by one, each for itself. `first`: the index of the first. */
function hostPortProblems(field: string, containers: readonly Container[], first = 0): readonly Problem[] {
  const places = containers.flatMap(({ ports = [] }, container) =>
    ports.flatMap(({ hostPort, protocol = 'TCP', hostIP = '' }, port) =>
      hostPort
        ? [{ at: `${field}[${first + container}].ports[${port}].hostPort`, text: `${protocol}/${hostIP}/${hostPort}` }]
        : [],
    ),
  )
  const repeated = repeatedPlaces(places.map(({ text }) => text))
  return places.filter((_, index) => repeated.has(index)).map(({ at, text }) => duplicate(at, text))
}

/** Extended resources, such as devices: they are counted whole and never shared. */
function isExtended(name: string): boolean {
  return name.includes('/') && !/(^|\.)kubernetes\.io\//.test(name) && qualifiedNameProblem(name) === undefined
}

function wholeProblems(at: string, amount: string | number): readonly Problem[] {
  return milliValue(amount) % 1000 === 0 ? [] : [invalid(at, amount, 'must be an integer')]
}

function sameProblems(field: string, name: string, limits: Quantities, requests: Quantities): readonly Problem[] {
  const [limit, request] = [limits[name], requests[name]]
  if (limit === undefined) return [required(`${field}.limits`, 'Limit must be set for non overcommitable resources')]
  if (request === undefined || compareQuantities(limit, request) === 0) return []
  return [invalid(`${field}.requests`, request, `must be equal to ${name} limit of ${limit}`)]
}

type Quantities = { readonly [resource: string]: string | number }

const noHugePages =
  'huge pages are not given to pods: Docker cannot hold a container to its share of them; remove the request and ask for memory'

const knownResources = ['cpu', 'memory', 'ephemeral-storage']

/** Problems of the amounts that a container requests. */
export function requirementProblems(
  field: string,
  { limits = {}, requests = {} }: ResourceRequirements,
): readonly Problem[] {
  const amounts = [
    ...Object.entries(limits).map(([name, amount]) => ({ at: `${field}.limits[${name}]`, name, amount })),
    ...Object.entries(requests).map(([name, amount]) => ({ at: `${field}.requests[${name}]`, name, amount })),
  ]
  const over = Object.entries(requests).filter(
    ([name, amount]) => limits[name] !== undefined && compareQuantities(amount, limits[name]) > 0,
  )
  return [
    ...amounts.flatMap(({ at, name, amount }) => {
      if (knownResources.includes(name)) return []
      if (name.startsWith('hugepages-')) return [forbidden(at, noHugePages)]
      return isExtended(name) ? wholeProblems(at, amount) : [forbidden(at, notYet)]
    }),
    ...[...new Set([...Object.keys(limits), ...Object.keys(requests)])].flatMap((name) =>
      isExtended(name) ? sameProblems(field, name, limits, requests) : [],
    ),
    ...amounts.flatMap(({ at, amount }) =>
      compareQuantities(amount, zeroQuantity) < 0 ? [invalid(at, amount, 'must be greater than or equal to 0')] : [],
    ),
    ...over.map(([name, amount]) =>
      invalid(`${field}.requests`, amount, `must be less than or equal to ${name} limit of ${limits[name]}`),
    ),
  ]
}

/** A file is mounted there, so a path that leads elsewhere than it reads is rejected. */
function messagePathProblems(field: string, path: string): readonly Problem[] {
  if (path === '') return []
  const steps = path.split('/')
  if (steps.includes('..')) return [invalid(field, path, "must not contain '..'")]
  if (path.includes(':')) return [invalid(field, path, "must not contain ':'")]
  return steps.every((step) => step === '' || step === '.') ? [invalid(field, path, 'must name a file')] : []
}
