/** What a pod is as an endpoint of a Service (staging/src/k8s.io/endpointslice/utils.go and util/controller_utils.go of Kubernetes). */

import type { Endpoint } from '../../../api/network/endpoint-slice.ts'
import { noClusterIP, type Service, type ServicePort } from '../../../api/network/service.ts'
import { specialAddressProblem } from '../../../api/node/reported-addresses.ts'
import { podCondition } from '../../../api/pod/pod-conditions.ts'
import { isFinished } from '../../../api/pod/pod-deletion.ts'
import type { Pod } from '../../../api/pod.ts'
import type { Labels } from '../../../api/selectors.ts'
import type { IPFamily } from '../../../api/text/ip-address.ts'

export type TargetPort = {
  readonly name: string
  readonly port: number
  readonly protocol: string
  readonly appProtocol?: string
}

/** What its pods have in their labels; undefined: it has no selector, so its endpoints are written by hand. */
export function selectorOf({ spec = {} }: Service): Labels | undefined {
  const { selector = {}, type } = spec
  return type === 'ExternalName' || Object.keys(selector).length === 0 ? undefined : selector
}

export function isHeadless({ spec = {} }: Service): boolean {
  return (spec.clusterIP || noClusterIP) === noClusterIP
}

/** The families of the Service's addresses, the preferred one first. */
export function familiesOf({ spec = {} }: Service): readonly IPFamily[] {
  const named = (spec.ipFamilies ?? []).filter((family) => family === 'IPv4' || family === 'IPv6')
  if (named.length > 0) return named
  return [familyOf(spec.clusterIP ?? '')]
}

export function familyOf(address: string): IPFamily {
  return address.includes(':') ? 'IPv6' : 'IPv4'
}

/** A pod that has ended, or has no address yet, is not an endpoint. */
export function isEndpoint(pod: Pod): boolean {
  return !isFinished(pod) && podAddresses(pod).length > 0
}

export function isTerminating({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined
}

export function isServing(pod: Pod): boolean {
  return podCondition(pod, 'Ready')?.status === 'True'
}

/** An address of the loopback, the link or a group would lead each node to something of its own: a pod may have it from before it was checked. */
export function podAddresses({ status = {} }: Pod): readonly string[] {
  const { podIP, podIPs = podIP ? [{ ip: podIP }] : [] } = status
  return podIPs.map(({ ip }) => ip).filter((ip) => ip !== '' && specialAddressProblem(ip) === undefined)
}

/** Where the pod listens for the port of the Service; undefined: none of its containers and sidecars has a port of that name. */
export function targetPortOf({ spec }: Pod, { targetPort, port, protocol = 'TCP' }: ServicePort): number | undefined {
  if (typeof targetPort !== 'string') return targetPort ?? port
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')
  return [...spec.containers, ...sidecars]
    .flatMap(({ ports = [] }) => ports)
    .find((one) => one.name === targetPort && (one.protocol ?? 'TCP') === protocol)?.containerPort
}

/**
 * Where a pod listens for each port of the Service; ports that it does not have are left out. Unless the Service names a port that each
 * pod may have under another number, all pods get the same list: many ports of many pods are read once.
 */
export function targetPortsReader({ spec = {} }: Service): (pod: Pod) => readonly TargetPort[] {
  const { ports = [] } = spec
  const read = (pod: Pod) =>
    ports.flatMap((one) => {
      const { name = '', protocol = 'TCP', appProtocol } = one
      const port = targetPortOf(pod, one)
      return port === undefined ? [] : [{ name, port, protocol, ...(appProtocol !== undefined && { appProtocol }) }]
    })
  if (ports.some(({ targetPort }) => typeof targetPort === 'string')) return read
  let known: readonly TargetPort[] | undefined
  return (pod) => {
    known ??= read(pod)
    return known
  }
}

/** The name of the pod below that of the Service, for DNS; undefined: it asks for none. */
export function hostnameIn({ metadata }: Service, { spec }: Pod): string | undefined {
  return spec.hostname && spec.subdomain === metadata.name ? spec.hostname : undefined
}

/** Whether Services may have other endpoints after this change of a pod that they select before and after. */
export function isOtherEndpoint(before: Pod, now: Pod): boolean {
  const facts = (pod: Pod) =>
    JSON.stringify([
      pod.metadata.uid,
      isFinished(pod),
      isTerminating(pod),
      isServing(pod),
      podAddresses(pod),
      pod.spec.nodeName,
      pod.spec.hostname,
      pod.spec.subdomain,
    ])
  return facts(before) !== facts(now)
}

export function podTargetRef({ metadata }: Pod): NonNullable<Endpoint['targetRef']> {
  const { name, namespace, uid } = metadata
  return {
    kind: 'Pod',
    ...(namespace !== undefined && { namespace }),
    ...(name !== undefined && { name }),
    ...(uid !== undefined && { uid }),
  }
}
