/** The Endpoints of a Service with a selector (pkg/controller/endpoint/endpoints_controller.go of Kubernetes). */
import type { EndpointAddress, EndpointSubset, Endpoints } from '../../../api/network/endpoints.ts'
import type { Service } from '../../../api/network/service.ts'
import type { Pod } from '../../../api/pod.ts'
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
  targetPortOf,
} from './pod-endpoints.ts'
import { headlessLabel, triggerTimeAnnotation } from './service-slices.ts'

const overCapacityAnnotation = 'endpoints.kubernetes.io/over-capacity'

/** The object as it is to be written; undefined: it is as it should be. `present`: what is stored now. */
export function serviceEndpoints(
  service: StoredObject<'services'>,
  pods: readonly Pod[],
  present: StoredObject<'endpoints'> | undefined,
  triggerTime: string | undefined,
): Endpoints | undefined {
  const packed = packedSubsets(pods.flatMap((pod) => subsetsOf(service, pod)))
  const truncated = truncatedSubsets(packed)
  const subsets = truncated ?? packed
  const { [headlessLabel]: _, ...given } = service.metadata.labels ?? {}
  const labels = { ...given, ...(isHeadless(service) && { [headlessLabel]: '' }) }
  const {
    [triggerTimeAnnotation]: __,
    [overCapacityAnnotation]: capacity,
    ...others
  } = present?.metadata.annotations ?? {}
  const isSame =
    present !== undefined &&
    equalJSON(present.subsets ?? [], subsets) &&
    equalJSON(present.metadata.labels ?? {}, labels) &&
    capacity === (truncated && 'truncated')
  if (isSame) return undefined
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

function subsetsOf(service: Service, pod: Pod): readonly EndpointSubset[] {
  const { ports = [], publishNotReadyAddresses = false } = service.spec ?? {}
  if (!isEndpoint(pod) || (isTerminating(pod) && !publishNotReadyAddresses)) return []
  const address = addressOf(service, pod)
  if (address === undefined) return []
  const placed =
    publishNotReadyAddresses || isServing(pod) ? { addresses: [address] } : { notReadyAddresses: [address] }
  if (ports.length === 0) return isHeadless(service) ? [placed] : []
  return ports.flatMap((one) => {
    const { name = '', protocol = 'TCP', appProtocol } = one
    const port = targetPortOf(pod, one)
    if (port === undefined) return []
    const target = { ...(name !== '' && { name }), port, protocol, ...(appProtocol !== undefined && { appProtocol }) }
    return [{ ...placed, ports: [target] }]
  })
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
