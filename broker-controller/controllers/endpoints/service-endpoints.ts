/** The Endpoints of a Service with a selector (pkg/controller/endpoint/endpoints_controller.go of Kubernetes). */
import type { EndpointAddress, EndpointSubset, Endpoints } from '../../../api/network/endpoints.ts'
import type { Service } from '../../../api/network/service.ts'
import type { Pod } from '../../../api/pod.ts'
import { eachInTurns } from '../../../daemon/limits/turn-limit.ts'
import { equalJSON } from '../../store/equal-json.ts'
import type { StoredObject } from '../../store/store.ts'
import { packedSubsets, truncatedSubsets } from './endpoint-subsets.ts'
import {
  familiesOf,
  familyOf,
  hostnameIn,
  isEndpoint,
  isHeadless,
  isServing,
  isTerminating,
  podAddresses,
  podTargetRef,
  type TargetPort,
  targetPortsReader,
} from './pod-endpoints.ts'
import { headlessLabel, triggerTimeAnnotation } from './service-slices.ts'

const overCapacityAnnotation = 'endpoints.kubernetes.io/over-capacity'

/** The object as it is to be written; undefined: it is as it should be. `present`: what is stored now. */
export async function serviceEndpoints(
  service: StoredObject<'services'>,
  pods: readonly Pod[],
  present: StoredObject<'endpoints'> | undefined,
  triggerTime: string | undefined,
): Promise<Endpoints | undefined> {
  const packed = await packedSubsets(await subsetsOf(service, pods))
  const truncated = truncatedSubsets(packed)
  const subsets = truncated ?? packed
  const { [headlessLabel]: _, ...given } = service.metadata.labels ?? {}
  const labels = { ...given, ...(isHeadless(service) && { [headlessLabel]: '' }) }
  const {
    [triggerTimeAnnotation]: __,
    [overCapacityAnnotation]: capacity,
    ...others
  } = present?.metadata.annotations ?? {}
  if (hasContent(present, subsets, labels) && capacity === (truncated && 'truncated')) return undefined
  const annotations = {
    ...others,
    ...(triggerTime !== undefined && { [triggerTimeAnnotation]: triggerTime }),
    ...(truncated && { [overCapacityAnnotation]: 'truncated' }),
  }
  const {
    labels: ___,
    annotations: ____,
    ...metadata
  } = present?.metadata ?? {
    name: service.metadata.name,
    namespace: service.metadata.namespace ?? '',
  }
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: {
      ...metadata,
      ...(Object.keys(labels).length > 0 && { labels }),
      ...(Object.keys(annotations).length > 0 && { annotations }),
    },
    ...(subsets.length > 0 && { subsets }),
  }
}

/** One for each pod. Many pods take several turns of the event loop. */
async function subsetsOf(service: Service, pods: readonly Pod[]): Promise<readonly EndpointSubset[]> {
  const { ports = [], publishNotReadyAddresses = false } = service.spec ?? {}
  const portsOf = subsetPortsReader(service)
  const subsets: EndpointSubset[] = []
  await eachInTurns(pods, (pod) => {
    if (!isEndpoint(pod) || (isTerminating(pod) && !publishNotReadyAddresses)) return
    const address = addressOf(service, pod)
    if (address === undefined) return
    const placed =
      publishNotReadyAddresses || isServing(pod) ? { addresses: [address] } : { notReadyAddresses: [address] }
    const listening = portsOf(pod)
    if (listening.length > 0) subsets.push({ ...placed, ports: listening })
    else if (ports.length === 0 && isHeadless(service)) subsets.push(placed)
  })
  return subsets
}

/** As Endpoints have them: without empty names. Equal lists are the same list. */
function subsetPortsReader(service: Service): (pod: Pod) => NonNullable<EndpointSubset['ports']> {
  const portsOf = targetPortsReader(service)
  const known = new Map<readonly TargetPort[], NonNullable<EndpointSubset['ports']>>()
  return (pod) => {
    const ports = portsOf(pod)
    const named = known.get(ports) ?? ports.map(({ name, ...port }) => ({ ...(name !== '' && { name }), ...port }))
    known.set(ports, named)
    return named
  }
}

/** Endpoints have addresses of one family: the first of the Service. */
function addressOf(service: Service, pod: Pod): EndpointAddress | undefined {
  const family = familiesOf(service)[0]
  const ip = podAddresses(pod).find((address) => familyOf(address) === family)
  if (ip === undefined) return undefined
  const hostname = hostnameIn(service, pod)
  return {
    ip,
    ...(hostname !== undefined && { hostname }),
    ...(pod.spec.nodeName && { nodeName: pod.spec.nodeName }),
    targetRef: podTargetRef(pod),
  }
}

function hasContent(
  present: StoredObject<'endpoints'> | undefined,
  subsets: NonNullable<Endpoints['subsets']>,
  labels: NonNullable<Endpoints['metadata']['labels']>,
): boolean {
  if (present === undefined) return false
  return equalJSON(present.subsets ?? [], subsets) && equalJSON(present.metadata.labels ?? {}, labels)
}
