/** Validates the probes and hooks of a container. */
import { portNameProblem } from '../names.ts'
import type { Container, Probe } from '../pod.ts'
import { forbidden, invalid, notSupported, type Problem, required } from '../problem.ts'
import { problemsWith } from './metadata-validation.ts'

/** `graceSeconds`: the pod's, which a sleep before the end must fit in. */
export function probeAndHookProblems(field: string, container: Container, graceSeconds: number): readonly Problem[] {
  const { livenessProbe, readinessProbe, startupProbe, lifecycle } = container
  return [
    ...(livenessProbe
      ? [
          ...probeProblems(`${field}.livenessProbe`, livenessProbe),
          ...onlyOnce(`${field}.livenessProbe`, livenessProbe),
        ]
      : []),
    ...(readinessProbe
      ? [
          ...probeProblems(`${field}.readinessProbe`, readinessProbe),
          ...noGrace(`${field}.readinessProbe`, readinessProbe),
        ]
      : []),
    ...(startupProbe
      ? [...probeProblems(`${field}.startupProbe`, startupProbe), ...onlyOnce(`${field}.startupProbe`, startupProbe)]
      : []),
    ...(lifecycle?.postStart ? handlerProblems(`${field}.lifecycle.postStart`, lifecycle.postStart, graceSeconds) : []),
    ...(lifecycle?.preStop ? handlerProblems(`${field}.lifecycle.preStop`, lifecycle.preStop, graceSeconds) : []),
  ]
}

const counts = [
  'initialDelaySeconds',
  'timeoutSeconds',
  'periodSeconds',
  'successThreshold',
  'failureThreshold',
] as const

function probeProblems(field: string, probe: Probe): readonly Problem[] {
  const grace = probe.terminationGracePeriodSeconds
  return [
    ...handlerProblems(field, probe, 0),
    ...counts.flatMap((name) => {
      const value = probe[name] ?? 0
      return value < 0 ? [invalid(`${field}.${name}`, value, 'must be greater than or equal to 0')] : []
    }),
    ...(grace !== undefined && grace <= 0
      ? [invalid(`${field}.terminationGracePeriodSeconds`, grace, 'must be greater than 0')]
      : []),
  ]
}

function onlyOnce(field: string, { successThreshold = 1 }: Probe): readonly Problem[] {
  return successThreshold === 1 ? [] : [invalid(`${field}.successThreshold`, successThreshold, 'must be 1')]
}

function noGrace(field: string, { terminationGracePeriodSeconds: grace }: Probe): readonly Problem[] {
  if (grace === undefined) return []
  return [invalid(`${field}.terminationGracePeriodSeconds`, grace, 'must not be set for readinessProbes')]
}

type Handler = Pick<Probe, 'exec' | 'httpGet' | 'tcpSocket' | 'grpc'> & {
  readonly sleep?: { readonly seconds: number }
}
const handlers = ['exec', 'httpGet', 'tcpSocket', 'grpc', 'sleep'] as const

function handlerProblems(field: string, handler: Handler, graceSeconds: number): readonly Problem[] {
  const [first, ...more] = handlers.filter((name) => handler[name] !== undefined)
  if (first === undefined) return [required(field, 'must specify a handler type')]
  const { exec, httpGet, tcpSocket, grpc, sleep } = handler
  return [
    ...more.map((name) => forbidden(`${field}.${name}`, 'may not specify more than 1 handler type')),
    ...(exec !== undefined && (exec.command ?? []).length === 0 ? [required(`${field}.exec.command`)] : []),
    ...(httpGet === undefined
      ? []
      : [...httpProblems(`${field}.httpGet`, httpGet), ...portProblems(`${field}.httpGet.port`, httpGet.port)]),
    ...(tcpSocket === undefined ? [] : portProblems(`${field}.tcpSocket.port`, tcpSocket.port)),
    ...(grpc === undefined ? [] : portProblems(`${field}.grpc.port`, grpc.port)),
    ...(sleep !== undefined && (sleep.seconds <= 0 || sleep.seconds > graceSeconds)
      ? [
          invalid(
            `${field}.sleep.seconds`,
            sleep.seconds,
            `must be greater than 0 and less than terminationGracePeriodSeconds (${graceSeconds})`,
          ),
        ]
      : []),
  ]
}

const headerName = /^[-A-Za-z0-9]+$/

function httpProblems(
  field: string,
  { path = '', scheme = '', httpHeaders = [] }: NonNullable<Probe['httpGet']>,
): readonly Problem[] {
  const because =
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"
  return [
    ...(path === '' ? [required(`${field}.path`)] : []),
    ...(scheme === 'HTTP' || scheme === 'HTTPS' ? [] : [notSupported(`${field}.scheme`, scheme, ['HTTP', 'HTTPS'])]),
    ...httpHeaders.flatMap(({ name }, index) =>
      headerName.test(name) ? [] : [invalid(`${field}.httpHeaders[${index}].name`, name, because)],
    ),
  ]
}

function portProblems(field: string, port: string | number): readonly Problem[] {
  if (typeof port === 'string') return problemsWith(field, port, portNameProblem)
  return port >= 1 && port <= 65535 ? [] : [invalid(field, port, 'must be between 1 and 65535, inclusive')]
}
