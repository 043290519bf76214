/** Validates Ingresses and their classes (pkg/apis/networking/validation/validation.go; messages as there). */
import { dns1035LabelProblem, dnsLabelProblem, dnsSubdomainProblem, portNameProblem } from '../../../../api/names.ts'
import type {
  HTTPIngressPath,
  Ingress,
  IngressBackend,
  IngressRule,
  IngressTLS,
} from '../../../../api/network/ingress.ts'
import type { IngressClass, IngressClassSpec } from '../../../../api/network/ingress-class.ts'
import { forbidden, invalid, notSupported, type Problem, required } from '../../../../api/problem.ts'
import { isIPAddress } from '../../../../api/text/ip-address.ts'
import { ipProblems, portNumberProblems } from '../../../../api/validation/endpoints-validation.ts'
import { pathSegmentProblems, problemsWith } from '../../../../api/validation/metadata-validation.ts'

/** The annotation that named the class before the field did. */
export const ingressClassAnnotation = 'kubernetes.io/ingress.class'

export function newIngressProblems(ingress: Ingress): readonly Problem[] {
  const named = ingress.metadata.annotations?.[ingressClassAnnotation]
  const inField = ingress.spec?.ingressClassName
  const differs = named !== undefined && inField !== undefined && named !== inField
  const because = 'must match `ingressClassName` when both are specified'
  return [
    ...ingressProblems(ingress),
    ...(differs ? [invalid(`annotations.${ingressClassAnnotation}`, named, because)] : []),
  ]
}

export function ingressProblems({ spec = {} }: Ingress): readonly Problem[] {
  const { defaultBackend, rules = [], tls = [], ingressClassName } = spec
  const isEmpty = rules.length === 0 && defaultBackend === undefined
  return [
    ...(isEmpty ? [invalid('spec', rules, 'either `defaultBackend` or `rules` must be specified')] : []),
    ...(defaultBackend === undefined ? [] : backendProblems('spec.defaultBackend', defaultBackend)),
    ...rules.flatMap((rule, index) => ruleProblems(`spec.rules[${index}]`, rule)),
    ...tls.flatMap((one, index) => tlsProblems(`spec.tls[${index}]`, one)),
    ...(ingressClassName === undefined
      ? []
      : problemsWith('spec.ingressClassName', ingressClassName, dnsSubdomainProblem)),
  ]
}

/** What is wrong with the status that an ingress controller writes (ValidateIngressLoadBalancerStatus). */
export function ingressStatusProblems({ status }: Ingress): readonly Problem[] {
  return (status?.loadBalancer?.ingress ?? []).flatMap(({ ip = '', hostname = '' }, index) => {
    const at = `status.loadBalancer.ingress[${index}]`
    return [
      ...(ip === '' ? [] : ipProblems(`${at}.ip`, ip)),
      ...(hostname === '' ? [] : problemsWith(`${at}.hostname`, hostname, dnsSubdomainProblem)),
      ...addressInPlaceOfName(`${at}.hostname`, hostname),
    ]
  })
}

export function ingressClassProblems({ spec = {} }: IngressClass): readonly Problem[] {
  return [...controllerProblems('spec.controller', spec.controller), ...parametersProblems(spec.parameters)]
}

export function ingressClassChangeProblems(old: IngressClass, now: IngressClass): readonly Problem[] {
  const controller = now.spec?.controller ?? ''
  const differs = controller !== (old.spec?.controller ?? '')
  return [
    ...(differs ? [invalid('spec.controller', controller, 'field is immutable')] : []),
    ...ingressClassProblems(now),
  ]
}

function ruleProblems(field: string, { host = '', http }: IngressRule): readonly Problem[] {
  const paths = http?.paths ?? []
  return [
    ...addressInPlaceOfName(`${field}.host`, host),
    ...(host === '' ? [] : hostProblems(`${field}.host`, host)),
    ...(http !== undefined && paths.length === 0 ? [required(`${field}.http.paths`)] : []),
    ...paths.flatMap((path, index) => pathProblems(`${field}.http.paths[${index}]`, path)),
  ]
}

function tlsProblems(field: string, { hosts = [], secretName = '' }: IngressTLS): readonly Problem[] {
  return [
    ...hosts.flatMap((host, index) => hostProblems(`${field}.hosts[${index}]`, host)),
    ...(secretName === '' ? [] : problemsWith(`${field}.secretName`, secretName, dnsSubdomainProblem)),
  ]
}

function hostProblems(field: string, host: string): readonly Problem[] {
  return problemsWith(field, host, host.includes('*') ? wildcardProblem : dnsSubdomainProblem)
}

/** `*.` and a subdomain. */
function wildcardProblem(host: string): string | undefined {
  if (host.length > 253) return 'must be no more than 253 characters'
  if (host.startsWith('*.') && dnsSubdomainProblem(host.slice(2)) === undefined) return undefined
  return "a wildcard must be '*.' followed by a DNS subdomain (like '*.example.com')"
}

function addressInPlaceOfName(field: string, name: string): readonly Problem[] {
  return isIPAddress(name) ? [invalid(field, name, 'must be a DNS name, not an IP address')] : []
}

const pathTypes = ['Exact', 'ImplementationSpecific', 'Prefix']
const unclearParts = ['//', '/./', '/../', '%2f', '%2F']
const unclearEnds = ['/..', '/.']

function pathProblems(field: string, { path = '', pathType, backend }: HTTPIngressPath): readonly Problem[] {
  if (pathType === undefined) return [required(`${field}.pathType`, 'pathType must be specified')]
  const isMatched = pathType === 'Exact' || pathType === 'Prefix'
  const mustBeAbsolute = isMatched || (pathType === 'ImplementationSpecific' && path !== '')
  const details = [
    ...(mustBeAbsolute && !path.startsWith('/') ? ['must be an absolute path'] : []),
    ...(isMatched
      ? unclearParts.filter((part) => path.includes(part)).map((part) => `must not contain '${part}'`)
      : []),
    ...(isMatched ? unclearEnds.filter((end) => path.endsWith(end)).map((end) => `cannot end with '${end}'`) : []),
  ]
  return [
    ...(pathTypes.includes(pathType) ? [] : [notSupported(`${field}.pathType`, pathType, pathTypes)]),
    ...details.map((detail) => invalid(`${field}.path`, path, detail)),
    ...backendProblems(`${field}.backend`, backend),
  ]
}

function backendProblems(field: string, { resource, service }: IngressBackend): readonly Problem[] {
  if (resource !== undefined && service !== undefined) {
    return [invalid(field, '', 'cannot set both resource and service backends')]
  }
  if (resource !== undefined) return referenceProblems(`${field}.resource`, resource)
  if (service === undefined) return [invalid(field, '', 'resource or service backend is required')]
  const { name, port: { name: portName = '', number = 0 } = {} } = service
  return [
    ...(name === ''
      ? [required(`${field}.service.name`)]
      : problemsWith(`${field}.service.name`, name, dns1035LabelProblem)),
    ...backendPortProblems(field, portName, number),
  ]
}

function backendPortProblems(field: string, name: string, number: number): readonly Problem[] {
  if (name !== '' && number !== 0) return [invalid(field, '', 'cannot set both port name & port number')]
  if (name !== '') return problemsWith(`${field}.service.port.name`, name, portNameProblem)
  return number === 0
    ? [required(field, 'port name or number is required')]
    : portNumberProblems(`${field}.service.port.number`, number)
}

type Reference = { readonly apiGroup?: string | undefined; readonly kind: string; readonly name: string }

function referenceProblems(field: string, { apiGroup, kind, name }: Reference): readonly Problem[] {
  return [
    ...(apiGroup === undefined ? [] : problemsWith(`${field}.apiGroup`, apiGroup, dnsSubdomainProblem)),
    ...pathSegmentProblems(`${field}.kind`, kind, 'kind is required'),
    ...pathSegmentProblems(`${field}.name`, name, 'name is required'),
  ]
}

const longestController = 250

/** `example.com/name` (IsDomainPrefixedPath). */
function controllerProblems(field: string, controller = ''): readonly Problem[] {
  if (controller === '') return [required(field)]
  const tooLong: readonly Problem[] =
    controller.length > longestController
      ? [{ field, reason: 'FieldValueTooLong', message: `Too long: may not be more than ${longestController} bytes` }]
      : []
  const [, domain = '', path = ''] = /^([^/]*)\/(.*)$/s.exec(controller) ?? []
  if (domain === '' || path === '') {
    return [...tooLong, invalid(field, controller, 'must be a domain-prefixed path (such as "acme.io/foo")')]
  }
  const isPath = /^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/.test(path)
  return [
    ...tooLong,
    ...problemsWith(field, domain, dnsSubdomainProblem),
    ...(isPath ? [] : [invalid(field, path, 'Invalid path')]),
  ]
}

const scopes = ['Cluster', 'Namespace']

function parametersProblems(parameters: IngressClassSpec['parameters']): readonly Problem[] {
  if (parameters === undefined) return []
  const field = 'spec.parameters'
  const { scope, namespace } = parameters
  return [...referenceProblems(field, parameters), ...scopeProblems(field, scope, namespace)]
}

function scopeProblems(field: string, scope: string | undefined, namespace: string | undefined): readonly Problem[] {
  if (scope === undefined) return [required(`${field}.scope`)]
  if (!scopes.includes(scope)) return [notSupported(`${field}.scope`, scope, scopes)]
  if (scope === 'Cluster') {
    return namespace === undefined ? [] : [forbidden(`${field}.namespace`, "`parameters.scope` is set to 'Cluster'")]
  }
  return namespace === undefined
    ? [required(`${field}.namespace`, "`parameters.scope` is set to 'Namespace'")]
    : problemsWith(`${field}.namespace`, namespace, dnsLabelProblem)
}
