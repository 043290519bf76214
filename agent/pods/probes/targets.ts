/** The target of a probe or a hook, with the pod's address and the named ports of the container resolved. */
import type { Container, Probe } from '../../../api/pod.ts'
import { expand } from '../options/expansion.ts'

export type Target =
  | { readonly kind: 'exec'; readonly command: readonly string[] }
  | {
      readonly kind: 'http'
      readonly scheme: 'http' | 'https'
      readonly host: string
      readonly port: number
      readonly path: string
      readonly headers: readonly { readonly name: string; readonly value: string }[]
      /** It asks for a lifecycle hook: any status is a success (pkg/kubelet/lifecycle/handlers.go, runHTTPHandler). */
      readonly isHook?: true
    }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'grpc'; readonly host: string; readonly port: number; readonly service: string }

/** `unknown`: the probe could not be tried. */
export type ProbeAnswer = {
  readonly result: 'success' | 'failure' | 'unknown'
  readonly message: string
  /** A success that is recorded with its message. */
  readonly isWarning?: true
}

/** Probes over the network. Starts no process and writes nothing. Always answers within the timeout. */
export interface NetworkProbes {
  ask(target: Exclude<Target, { kind: 'exec' }>, timeoutMs: number, signal: AbortSignal): Promise<ProbeAnswer>
}

type Action = Pick<Probe, 'exec' | 'httpGet' | 'tcpSocket' | 'grpc'>

/** undefined: there is no action, or the pod has no address. */
export function targetOf(action: Action, container: Container, podIP: string | undefined): Target | undefined {
  const { exec, httpGet, tcpSocket, grpc } = action
  if (exec !== undefined) return { kind: 'exec', command: exec.command ?? [] }
  const host = httpGet?.host || tcpSocket?.host || podIP
  if (host === undefined) return undefined
  if (grpc !== undefined) return { kind: 'grpc', host, port: grpc.port, service: grpc.service ?? '' }
  const port = portOf(httpGet?.port ?? tcpSocket?.port, container)
  if (port === undefined) return undefined
  if (httpGet === undefined) return { kind: 'tcp', host, port }
  const { scheme, path = '', httpHeaders = [] } = httpGet
  return {
    kind: 'http',
    scheme: scheme === 'HTTPS' ? 'https' : 'http',
    host,
    port,
    path: path.startsWith('/') ? path : `/${path}`,
    headers: httpHeaders,
  }
}

/**
 * As `targetOf`. The command sees the variables of the container that have a value of their own; that of a hook sees none
 * (pkg/kubelet/container/helpers.go, ExpandContainerCommandOnlyStatic).
 */
export function probeTargetOf(probe: Probe, container: Container, podIP: string | undefined): Target | undefined {
  const target = targetOf(probe, container, podIP)
  if (target?.kind !== 'exec') return target
  const values = new Map((container.env ?? []).map(({ name, value = '' }) => [name, value]))
  return { kind: 'exec', command: target.command.map((word) => expand(word, values)) }
}

/** Why the port of the action names none of the container's; undefined: it does, or there is none to name. */
export function portProblem({ httpGet, tcpSocket }: Action, container: Container): string | undefined {
  const port = httpGet?.port ?? tcpSocket?.port
  if (port === undefined || portOf(port, container) !== undefined) return undefined
  return typeof port === 'number'
    ? `invalid port number: ${port}`
    : `port ${port} not found in container ${container.name}`
}

function portOf(port: string | number | undefined, { ports = [] }: Container): number | undefined {
  const number = Number(ports.find(({ name }) => name === port)?.containerPort ?? port)
  return Number.isInteger(number) && number > 0 && number < 65536 ? number : undefined
}
