/** core/v1 Service: a stable address and name for a set of pods. */
import { ObjectMetaSchema } from '../meta.ts'
import {
  atomic,
  bool,
  type Described,
  field,
  integer,
  intOrString,
  list,
  listBy,
  mapOf,
  object,
  oneOf,
  optional,
  pointer,
  text,
  time,
} from '../schema.ts'

const ServicePortSchema = object({
  name: field(1, optional(text)),
  protocol: field(2, optional(text)),
  port: field(3, integer),
  targetPort: field(4, optional(intOrString)),
  nodePort: field(5, optional(integer)),
  appProtocol: pointer(6, optional(text)),
})
export type ServicePort = Described<typeof ServicePortSchema>

const ServiceSpecSchema = object({
  ports: field(1, optional(listBy('port', ServicePortSchema, { keys: { port: undefined, protocol: 'TCP' } }))),
  selector: field(2, optional(atomic(mapOf(text)))),
  clusterIP: field(3, optional(text)),
  type: field(4, optional(text)),
  externalIPs: field(5, optional(list(text))),
  sessionAffinity: field(7, optional(text)),
  loadBalancerIP: field(8, optional(text)),
  loadBalancerSourceRanges: field(9, optional(list(text))),
  externalName: field(10, optional(text)),
  externalTrafficPolicy: field(11, optional(text)),
  healthCheckNodePort: field(12, optional(integer)),
  publishNotReadyAddresses: field(13, optional(bool)),
  sessionAffinityConfig: field(
    14,
    optional(object({ clientIP: field(1, optional(object({ timeoutSeconds: pointer(1, optional(integer)) }))) })),
  ),
  ipFamilyPolicy: pointer(17, optional(text)),
  clusterIPs: field(18, optional(list(text))),
  ipFamilies: field(19, optional(list(text))),
  allocateLoadBalancerNodePorts: pointer(20, optional(bool)),
  loadBalancerClass: pointer(21, optional(text)),
  internalTrafficPolicy: pointer(22, optional(text)),
  trafficDistribution: pointer(23, optional(text)),
})
export type ServiceSpec = Described<typeof ServiceSpecSchema>

const LoadBalancerIngressSchema = object({
  ip: field(1, optional(text)),
  hostname: field(2, optional(text)),
  ipMode: pointer(3, optional(text)),
  ports: field(
    4,
    optional(list(object({ port: field(1, integer), protocol: field(2, text), error: pointer(3, optional(text)) }))),
  ),
})

const ServiceStatusSchema = object({
  loadBalancer: field(1, optional(object({ ingress: field(1, optional(list(LoadBalancerIngressSchema))) }))),
  conditions: field(
    2,
    optional(
      listBy(
        'type',
        object({
          type: field(1, text),
          status: field(2, oneOf('True', 'False', 'Unknown')),
          observedGeneration: field(3, optional(integer)),
          lastTransitionTime: field(4, optional(time)),
          reason: field(5, optional(text)),
          message: field(6, optional(text)),
        }),
      ),
    ),
  ),
})

export const ServiceSchema = object({
  apiVersion: oneOf('v1'),
  kind: oneOf('Service'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(2, optional(ServiceSpecSchema)),
  status: field(3, optional(ServiceStatusSchema)),
})
export type Service = Described<typeof ServiceSchema>

/** The address of a Service that has none of its own (core/v1 ClusterIPNone). */
export const noClusterIP = 'None'

/** Whether clients outside the fleet reach it (pkg/api/service/util.go, ExternallyAccessible). */
export function isExternallyAccessible({ type, externalIPs = [] }: ServiceSpec): boolean {
  return type === 'LoadBalancer' || type === 'NodePort' || (type === 'ClusterIP' && externalIPs.length > 0)
}

/** Whether a port of each node answers for it. */
export function needsNodePorts({ type }: ServiceSpec): boolean {
  return type === 'LoadBalancer' || type === 'NodePort'
}

/** Whether it gets node ports that its author does not name. */
export function allocatesNodePorts({ type, allocateLoadBalancerNodePorts }: ServiceSpec): boolean {
  return type === 'NodePort' || (type === 'LoadBalancer' && allocateLoadBalancerNodePorts !== false)
}

/** Whether a load balancer asks nodes if they have a pod of it (pkg/api/service/util.go, NeedsHealthCheck). */
export function needsHealthCheckPort({ type, externalTrafficPolicy }: ServiceSpec): boolean {
  return type === 'LoadBalancer' && externalTrafficPolicy === 'Local'
}
