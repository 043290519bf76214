/** core/v1 Service (pkg/registry/core/service/strategy.go). */
import { dns1035LabelProblem } from '../../../../api/names.ts'
import { isExternallyAccessible, type Service, type ServiceSpec } from '../../../../api/network/service.ts'
import { resources } from '../../../../api/resources.ts'
import {
  serviceChangeProblems,
  serviceProblems,
  serviceStatusProblems,
} from '../../../../api/validation/service-validation.ts'
import { serviceWarnings } from '../../../../api/warnings/service-warnings.ts'
import { type KindStrategy, statusSubresource } from '../../handlers/strategy.ts'
import { proxyToService } from '../../proxy/proxy-handlers.ts'
import { withAllocations } from './service-allocation.ts'
import { changedService, newService } from './service-change.ts'
import { serviceTable } from './service-table.ts'

export const serviceStrategy: KindStrategy<Service> = {
  ...resources.services,
  createdByUpdate: true,
  returnsDeletedObject: true,
  table: serviceTable,
  selectableFields: ['spec.clusterIP', 'spec.type'],
  subresources: {
    proxy: { access: 'proxy', kind: 'ServiceProxyOptions', proxy: proxyToService },
    status: {
      ...statusSubresource,
      prepareForUpdate: (_, now) => now,
      validateUpdate: (_, now) => serviceStatusProblems(now),
    },
  },
  nameProblem: dns1035LabelProblem,
  withDefaults,
  prepareForCreate: newService,
  prepareForUpdate: changedService,
  warningsOnCreate: serviceWarnings,
  warningsOnUpdate: (_, now) => serviceWarnings(now),
  validateCreate: serviceProblems,
  validateUpdate: serviceChangeProblems,
  // A Service is read, allocated and written before the next one: two of them never find the same address free.
  write: (service, old, { store, random, services: { ranges, oneAtATime } }, put) =>
    oneAtATime(async () => {
      const { items } = await store.list('services')
      return put(withAllocations(service, old, { services: items, ranges, random }))
    }),
}

/** Three hours (DefaultClientIPServiceAffinitySeconds). */
const affinitySeconds = 10_800

/** SetDefaults_Service in pkg/apis/core/v1/defaults.go. */
function withDefaults(service: Service): Service {
  const { sessionAffinityConfig, ...spec } = service.spec ?? {}
  const type = spec.type || 'ClusterIP'
  const sessionAffinity = spec.sessionAffinity || 'None'
  const seconds = sessionAffinityConfig?.clientIP?.timeoutSeconds ?? affinitySeconds
  const external = isExternallyAccessible({ ...spec, type }) && !spec.externalTrafficPolicy
  const complete: ServiceSpec = {
    ...spec,
    type,
    sessionAffinity,
    ...(sessionAffinity === 'ClientIP' && { sessionAffinityConfig: { clientIP: { timeoutSeconds: seconds } } }),
    ...(spec.ports && {
      ports: spec.ports.map((port) => ({
        ...port,
        protocol: port.protocol || 'TCP',
        targetPort: port.targetPort || port.port,
      })),
    }),
    ...(external && { externalTrafficPolicy: 'Cluster' }),
    ...(type !== 'ExternalName' && { internalTrafficPolicy: spec.internalTrafficPolicy ?? 'Cluster' }),
    ...(type === 'LoadBalancer' && {
      allocateLoadBalancerNodePorts: spec.allocateLoadBalancerNodePorts ?? true,
    }),
  }
  return { ...service, spec: complete, ...(type === 'LoadBalancer' && withIPModes(service)) }
}

/** An address of a load balancer is a virtual one unless its author writes otherwise. */
function withIPModes({ status = {} }: Service): Pick<Service, 'status'> {
  const ingress = status.loadBalancer?.ingress
  if (ingress === undefined) return { status }
  const complete = ingress.map((one) => (one.ip && one.ipMode === undefined ? { ...one, ipMode: 'VIP' } : one))
  return { status: { ...status, loadBalancer: { ...status.loadBalancer, ingress: complete } } }
}
