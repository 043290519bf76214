/** What the name in the path of a proxy stands for (utilnet.SplitSchemeNamePort; ResourceLocation of pods and nodes). */
import { ApiError } from '../../../api/api-error.ts'
import type { Pod } from '../../../api/pod.ts'

export type ProxyTarget = {
  readonly name: string
  readonly scheme: 'http' | 'https'
  /** undefined: none is named. */
  readonly port: number | undefined
}

/** A port of a Service. `port`: its name or number, or '' for the one without a name. */
export type ServiceTarget = Omit<ProxyTarget, 'port'> & { readonly port: string }

/** Reads `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT`. Throws BadRequest for anything else; `what` is `pod` or `node`. */
export function proxyTarget(id: string, what: string): ProxyTarget {
  const { port, ...target } = partsOf(id, what)
  const number = port === '' ? undefined : Number(port)
  if (number !== undefined && !(/^\d{1,5}$/.test(port) && number >= 1 && number <= 65_535)) {
    throw new ApiError('BadRequest', `${invalidRequest(id, what)}: the port must be a number between 1 and 65535`)
  }
  return { ...target, port: number }
}

/** The same for a Service, whose ports have names. */
export function serviceTarget(id: string): ServiceTarget {
  return partsOf(id, 'service')
}

function partsOf(id: string, what: string): ServiceTarget {
  const parts = id.split(':')
  const [scheme = '', name = '', port = ''] = parts.length === 3 ? parts : ['', ...parts]
  if (parts.length > 3 || name === '' || !['', 'http', 'https'].includes(scheme)) {
    throw new ApiError('BadRequest', invalidRequest(id, what))
  }
  return { name, scheme: scheme === 'https' ? 'https' : 'http', port }
}

function invalidRequest(id: string, what: string): string {
  return `invalid ${what} request ${JSON.stringify(id)}`
}

/** Where no port is named: the first that a container of the pod declares, or that of the scheme. */
export function podPort({ spec }: Pod, { scheme, port }: Omit<ProxyTarget, 'name'>): number {
  const declared = spec.containers.find(({ ports = [] }) => ports.length > 0)?.ports?.[0]?.containerPort
  return port ?? declared ?? (scheme === 'https' ? 443 : 80)
}
