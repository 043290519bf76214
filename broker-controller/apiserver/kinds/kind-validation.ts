/** What is wrong with an object of the smaller kinds, and what of it may change later? */
import { isDeepStrictEqual } from 'node:util'
import type { CertificateSigningRequest } from '../../../api/certificate-signing-request.ts'
import type { ConfigMap } from '../../../api/config-map.ts'
import type { Lease } from '../../../api/lease.ts'
import { dataKeyProblem, labelKeyProblem, labelValueProblem, qualifiedNameProblem } from '../../../api/names.ts'
import type { Node } from '../../../api/node.ts'
import type { PodDisruptionBudget } from '../../../api/pod-disruption-budget.ts'
import { duplicate, forbidden, invalid, notSupported, type Problem, required } from '../../../api/problem.ts'
import type { Secret } from '../../../api/secret.ts'
import { requirementsOf } from '../../../api/selectors.ts'
import { problemsWith } from '../../../api/validation/metadata-validation.ts'
import { repeatedPlaces } from '../../../api/validation/repeated.ts'
import { storyOf } from '../../../daemon/log.ts'
import { revocationsIn, revocationsKey } from '../../store/revocations.ts'

export function nodeProblems({ spec }: Node): readonly Problem[] {
  const { podCIDR, podCIDRs = [], taints = [] } = spec ?? {}
  const kinds = taints.map(({ key, effect }) => `${key}:${effect}`)
  const repeated = repeatedPlaces(kinds)
  const twoRanges = podCIDR && podCIDRs.length > 0 && podCIDRs[0] !== podCIDR
  const ranges = twoRanges ? [invalid('spec.podCIDR', podCIDR, 'must match the first of spec.podCIDRs')] : []
  const wrong = taints.flatMap(({ key, value = '' }, index) => {
    const field = `spec.taints[${index}]`
    return [
      ...(key === '' ? [required(`${field}.key`)] : problemsWith(`${field}.key`, key, labelKeyProblem)),
      ...problemsWith(`${field}.value`, value, labelValueProblem),
      ...(repeated.has(index) ? [duplicate(field, kinds[index])] : []),
    ]
  })
  return [...ranges, ...wrong]
}

export function nodeChangeProblems({ spec: old = {} }: Node, { spec: now = {} }: Node): readonly Problem[] {
  return (['podCIDR', 'podCIDRs', 'providerID'] as const).flatMap((field) =>
    fixedOnceSet(`spec.${field}`, old[field], now[field]),
  )
}

const mostDataBytes = 1024 * 1024

export function configMapProblems(map: ConfigMap): readonly Problem[] {
  const { data = {}, binaryData = {} } = map
  const twice = Object.keys(binaryData).filter((key) => Object.hasOwn(data, key))
  return [
    ...revocationProblems(map),
    ...keyProblems('data', data),
    ...keyProblems('binaryData', binaryData),
    ...twice.map((key) => invalid(`binaryData[${key}]`, key, 'is also a key of data')),
    ...sizeProblems(textBytes(data) + decodedBytes(binaryData)),
  ]
}

/** A list that cannot be understood would keep the controller from starting. */
function revocationProblems(map: ConfigMap): readonly Problem[] {
  const { name, namespace } = map.metadata
  if (name !== revocationsKey.name || namespace !== revocationsKey.namespace) return []
  try {
    revocationsIn(map)
    return []
  } catch (error) {
    return [invalid('data[revoked]', map.data?.['revoked'], storyOf(error))]
  }
}

export function configMapChangeProblems(old: ConfigMap, now: ConfigMap): readonly Problem[] {
  return frozenProblems(old, now, ['data', 'binaryData'])
}

export function secretProblems({ data = {} }: Secret): readonly Problem[] {
  return [...keyProblems('data', data), ...sizeProblems(decodedBytes(data))]
}

/** Who uses a secret of these types relies on what is in it. */
export function secretContentProblems({ metadata, type, data = {} }: Secret): readonly Problem[] {
  const missing = (...keys: readonly string[]) =>
    keys.filter((key) => !Object.hasOwn(data, key)).map((key) => required(`data[${key}]`))
  switch (type) {
    case 'kubernetes.io/dockerconfigjson':
      return loginProblems('.dockerconfigjson', data)
    case 'kubernetes.io/dockercfg':
      return loginProblems('.dockercfg', data)
    case 'kubernetes.io/tls':
      return missing('tls.crt', 'tls.key')
    case 'kubernetes.io/ssh-auth':
      return data['ssh-privatekey'] ? [] : [required('data[ssh-privatekey]')]
    case 'kubernetes.io/basic-auth': {
      const problems = missing('username', 'password')
      return problems.length === 2 ? problems : []
    }
    case 'kubernetes.io/service-account-token': {
      const account = 'kubernetes.io/service-account.name'
      return metadata.annotations?.[account] ? [] : [required(`metadata.annotations[${account}]`)]
    }
    default:
      return []
  }
}

/** Logins at registries, as Docker writes them. The content is not shown. */
function loginProblems(key: string, data: Data): readonly Problem[] {
  const field = `data[${key}]`
  const encoded = data[key]
  if (encoded === undefined) return [required(field)]
  try {
    const content: unknown = JSON.parse(Buffer.from(encoded, 'base64').toString('utf8'))
    if (typeof content === 'object' && content !== null && !Array.isArray(content)) return []
  } catch {
    // Told below: what the parser says would show a part of it.
  }
  return [invalid(field, '<secret contents redacted>', 'must be a JSON object')]
}

export function secretChangeProblems(old: Secret, now: Secret): readonly Problem[] {
  const retyped = old.type === now.type ? [] : [invalid('type', now.type, 'field is immutable')]
  return [...retyped, ...frozenProblems(old, now, ['data'])]
}

export function leaseProblems({ spec = {} }: Lease): readonly Problem[] {
  const { leaseDurationSeconds, leaseTransitions } = spec
  return [
    ...(leaseDurationSeconds !== undefined && leaseDurationSeconds <= 0
      ? [invalid('spec.leaseDurationSeconds', leaseDurationSeconds, 'must be greater than 0')]
      : []),
    ...(leaseTransitions !== undefined && leaseTransitions < 0
      ? [invalid('spec.leaseTransitions', leaseTransitions, 'must be greater than or equal to 0')]
      : []),
  ]
}

const shortestCertificateSeconds = 600

export function requestProblems({ spec }: CertificateSigningRequest): readonly Problem[] {
  const { request, signerName, usages = [], expirationSeconds } = spec
  const isRequest = /-----BEGIN (NEW )?CERTIFICATE REQUEST-----/.test(Buffer.from(request, 'base64').toString('latin1'))
  const repeated = repeatedPlaces(usages)
  const usageRepeated = usages.filter((_, index) => repeated.has(index))
  return [
    ...(isRequest ? [] : [invalid('spec.request', '', 'must be a PEM block of type CERTIFICATE REQUEST')]),
    ...(signerName.includes('/')
      ? problemsWith('spec.signerName', signerName, qualifiedNameProblem)
      : [invalid('spec.signerName', signerName, "must be of the form 'domain/name'")]),
    ...(usages.length === 0
      ? [required('spec.usages')]
      : usageRepeated.map((usage) => duplicate('spec.usages', usage))),
    ...(expirationSeconds !== undefined && expirationSeconds < shortestCertificateSeconds
      ? [
          invalid(
            'spec.expirationSeconds',
            expirationSeconds,
            `may not specify a duration less than ${shortestCertificateSeconds} seconds`,
          ),
        ]
      : []),
  ]
}

export function requestChangeProblems(
  old: CertificateSigningRequest,
  now: CertificateSigningRequest,
): readonly Problem[] {
  const conditions = now.status?.conditions ?? []
  const verdicts = ['Approved', 'Denied', 'Failed']
  const had = verdicts.filter((verdict) => old.status?.conditions?.some(({ type }) => type === verdict))
  const removed = had.filter((verdict) => !conditions.some(({ type }) => type === verdict))
  return [
    ...(isDeepStrictEqual(old.spec, now.spec) ? [] : [forbidden('spec', 'field is immutable')]),
    ...removed.map((verdict) =>
      forbidden('status.conditions', `updates may not remove a condition of type ${JSON.stringify(verdict)}`),
    ),
    ...conditions.flatMap(({ type, status }, index) =>
      verdicts.includes(type) && status !== 'True'
        ? [notSupported(`status.conditions[${index}].status`, status, ['True'])]
        : [],
    ),
  ]
}

export function budgetProblems({ spec = {} }: PodDisruptionBudget): readonly Problem[] {
  const { minAvailable, maxUnavailable, selector } = spec
  const both = minAvailable !== undefined && maxUnavailable !== undefined
  const selects = requirementsOf(selector)
  return [
    ...(both ? [invalid('spec', spec, 'minAvailable and maxUnavailable cannot be both set')] : []),
    ...shareProblems('spec.minAvailable', minAvailable),
    ...shareProblems('spec.maxUnavailable', maxUnavailable),
    ...(selects === undefined || selects.ok ? [] : [invalid('spec.selector', selector, selects.problem)]),
  ]
}

/** A number of pods, or a part of them. */
function shareProblems(field: string, share: number | string | undefined): readonly Problem[] {
  if (typeof share === 'number') {
    return share < 0 ? [invalid(field, share, 'must be greater than or equal to 0')] : []
  }
  if (share === undefined) return []
  if (!/^\d+%$/.test(share)) {
    return [invalid(field, share, "a valid percent string must be a numeric string followed by an ending '%'")]
  }
  return Number.parseInt(share, 10) > 100 ? [invalid(field, share, 'must not be greater than 100%')] : []
}

function keyProblems(field: string, data: object): readonly Problem[] {
  return Object.keys(data).flatMap((key) => problemsWith(`${field}[${key}]`, key, dataKeyProblem))
}

type Data = { readonly [key: string]: string }

function textBytes(data: Data): number {
  return Object.values(data).reduce((sum, value) => sum + Buffer.byteLength(value), 0)
}

function decodedBytes(data: Data): number {
  return Object.values(data).reduce((sum, value) => sum + Buffer.byteLength(value, 'base64'), 0)
}

function sizeProblems(bytes: number): readonly Problem[] {
  return bytes <= mostDataBytes
    ? []
    : [invalid('data', `${bytes} bytes`, `may not be more than ${mostDataBytes} bytes`)]
}

type Freezable = ConfigMap | Secret

/** Once immutable, always so, and its content with it. */
function frozenProblems<T extends Freezable>(
  old: T,
  now: T,
  content: readonly (keyof T & string)[],
): readonly Problem[] {
  if (old.immutable !== true) return []
  const because = 'field is immutable when `immutable` is set'
  return [
    ...(now.immutable === true ? [] : [forbidden('immutable', because)]),
    ...content.filter((field) => !isDeepStrictEqual(old[field], now[field])).map((field) => forbidden(field, because)),
  ]
}

/** Fields that may be set once and then stay. */
function fixedOnceSet(field: string, old: unknown, now: unknown): Problem[] {
  if (old === undefined || old === '' || isDeepStrictEqual(old, now)) return []
  return [forbidden(field, 'may not be changed once it is set')]
}
