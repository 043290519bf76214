/** What the containers of a pod are given of the Services in its namespace (pkg/kubelet/envvars/envvars.go). */
import { type Described, integer, list, object, optional, text } from '../schema.ts'
import { hostPort } from '../text/ip-address.ts'
import type { Service } from './service.ts'

/** A Service as its nodes receive it. */
export const ServiceLinkSchema = object({
  namespace: text,
  name: text,
  clusterIP: text,
  ports: list(object({ name: optional(text), port: integer, protocol: optional(text) })),
})
export type ServiceLink = Described<typeof ServiceLinkSchema>

/**
 * undefined: containers get no variables of this Service, because it has no address or no port. The API has variables of its own:
 * nothing forwards packets to the address of `default/kubernetes`.
 */
export function serviceLinkOf({ metadata, spec }: Service): ServiceLink | undefined {
  const { name = '', namespace = 'default' } = metadata
  const { clusterIP = '', ports = [] } = spec ?? {}
  if (clusterIP === '' || clusterIP === 'None' || ports.length === 0) return undefined
  if (namespace === 'default' && name === 'kubernetes') return undefined
  return {
    namespace,
    name,
    clusterIP,
    ports: ports.map(({ name: portName, port, protocol }) => ({
      ...(portName && { name: portName }),
      port,
      ...(protocol && { protocol }),
    })),
  }
}

/** In order: the address, the first port, named ports, then the variables that Docker gave to linked containers. */
export function serviceVariables({ name, clusterIP, ports }: ServiceLink): readonly (readonly [string, string])[] {
  const prefix = variableName(name)
  const [first] = ports
  if (first === undefined) return []
  const links = ports.flatMap((one): (readonly [string, string])[] => {
    const port = String(one.port)
    const link = `${prefix}_PORT_${port}_${(one.protocol ?? 'TCP').toUpperCase()}`
    return [
      [link, urlOf(clusterIP, one)],
      [`${link}_PROTO`, (one.protocol ?? 'TCP').toLowerCase()],
      [`${link}_PORT`, port],
      [`${link}_ADDR`, clusterIP],
    ]
  })
  return [
    [`${prefix}_SERVICE_HOST`, clusterIP],
    [`${prefix}_SERVICE_PORT`, String(first.port)],
    ...ports.flatMap((one): (readonly [string, string])[] =>
      one.name === undefined ? [] : [[`${prefix}_SERVICE_PORT_${variableName(one.name)}`, String(one.port)]],
    ),
    [`${prefix}_PORT`, urlOf(clusterIP, first)],
    ...links,
  ]
}

function urlOf(clusterIP: string, { port, protocol = 'TCP' }: ServiceLink['ports'][number]): string {
  return `${protocol.toLowerCase()}://${hostPort(clusterIP, port)}`
}

function variableName(name: string): string {
  return name.replaceAll('-', '_').toUpperCase()
}
