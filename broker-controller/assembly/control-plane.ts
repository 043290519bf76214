/** The parts of this control plane: the kinds that its API serves, and the controllers that reconcile their objects. */
import type { AnyObject } from '../../api/meta.ts'
import { type BuiltInName, type BuiltInTypes, resourceRegistry } from '../../api/resources.ts'
import type { MetricsRegistry } from '../../daemon/metrics-registry.ts'
import type { Loop } from '../../daemon/run.ts'
import type { KindRegistry, KindStrategy } from '../apiserver/handlers/strategy.ts'
import { kindDeletion } from '../apiserver/kind-deletion.ts'
import { serviceAccountStrategy } from '../apiserver/kinds/accounts/service-account.ts'
import { mutatingWebhookConfigurationStrategy } from '../apiserver/kinds/admission/mutating-webhook-configuration.ts'
import { validatingAdmissionPolicyStrategy } from '../apiserver/kinds/admission/validating-admission-policy.ts'
import { validatingAdmissionPolicyBindingStrategy } from '../apiserver/kinds/admission/validating-admission-policy-binding.ts'
import { validatingWebhookConfigurationStrategy } from '../apiserver/kinds/admission/validating-webhook-configuration.ts'
import {
  horizontalPodAutoscalerStrategy,
  horizontalPodAutoscalerV1Strategy,
} from '../apiserver/kinds/autoscaling/horizontal-pod-autoscaler.ts'
import { cronJobStrategy } from '../apiserver/kinds/batch/cron-job.ts'
import { jobStrategy } from '../apiserver/kinds/batch/job.ts'
import { certificateSigningRequestStrategy } from '../apiserver/kinds/certificate-signing-request.ts'
import { customResourceDefinitionStrategy } from '../apiserver/kinds/custom/custom-resource-definition.ts'
import { configMapStrategy } from '../apiserver/kinds/data/config-map.ts'
import { secretStrategy } from '../apiserver/kinds/data/secret.ts'
import { eventStrategy } from '../apiserver/kinds/event.ts'
import { eventV1Strategy } from '../apiserver/kinds/event-v1.ts'
import { flowSchemaStrategy } from '../apiserver/kinds/flow-control/flow-schema.ts'
import { priorityLevelConfigurationStrategy } from '../apiserver/kinds/flow-control/priority-level-configuration.ts'
import { leaseStrategy } from '../apiserver/kinds/lease.ts'
import { limitRangeStrategy } from '../apiserver/kinds/limits/limit-range.ts'
import { resourceQuotaStrategy } from '../apiserver/kinds/limits/resource-quota.ts'
import { runtimeClassStrategy } from '../apiserver/kinds/limits/runtime-class.ts'
import { namespaceStrategy } from '../apiserver/kinds/namespace.ts'
import { endpointSliceStrategy } from '../apiserver/kinds/network/endpoint-slice.ts'
import { endpointsStrategy } from '../apiserver/kinds/network/endpoints.ts'
import { ingressStrategy } from '../apiserver/kinds/network/ingress.ts'
import { ingressClassStrategy } from '../apiserver/kinds/network/ingress-class.ts'
import { networkPolicyStrategy } from '../apiserver/kinds/network/network-policy.ts'
import { serviceStrategy } from '../apiserver/kinds/network/service.ts'
import { nodeStrategy } from '../apiserver/kinds/node.ts'
import { podStrategy } from '../apiserver/kinds/pod.ts'
import { podDisruptionBudgetStrategy } from '../apiserver/kinds/pod-disruption-budget.ts'
import { priorityClassStrategy } from '../apiserver/kinds/priority-class.ts'
import { clusterRoleStrategy } from '../apiserver/kinds/rbac/cluster-role.ts'
import { clusterRoleBindingStrategy } from '../apiserver/kinds/rbac/cluster-role-binding.ts'
import { roleStrategy } from '../apiserver/kinds/rbac/role.ts'
import { roleBindingStrategy } from '../apiserver/kinds/rbac/role-binding.ts'
import { apiServiceStrategy } from '../apiserver/kinds/registration/api-service.ts'
import { csiDriverStrategy } from '../apiserver/kinds/storage/csi-driver.ts'
import { csiNodeStrategy } from '../apiserver/kinds/storage/csi-node.ts'
import { csiStorageCapacityStrategy } from '../apiserver/kinds/storage/csi-storage-capacity.ts'
import { persistentVolumeStrategy } from '../apiserver/kinds/storage/persistent-volume.ts'
import { persistentVolumeClaimStrategy } from '../apiserver/kinds/storage/persistent-volume-claim.ts'
import { storageClassStrategy } from '../apiserver/kinds/storage/storage-class.ts'
import { volumeAttachmentStrategy } from '../apiserver/kinds/storage/volume-attachment.ts'
import { controllerRevisionStrategy } from '../apiserver/kinds/workloads/controller-revision.ts'
import { daemonSetStrategy } from '../apiserver/kinds/workloads/daemon-set.ts'
import { deploymentStrategy } from '../apiserver/kinds/workloads/deployment.ts'
import { podTemplateStrategy } from '../apiserver/kinds/workloads/pod-template.ts'
import { replicaSetStrategy } from '../apiserver/kinds/workloads/replica-set.ts'
import { replicationControllerStrategy } from '../apiserver/kinds/workloads/replication-controller.ts'
import { statefulSetStrategy } from '../apiserver/kinds/workloads/stateful-set.ts'
import { localApiServices } from '../apiserver/local-api-services.ts'
import { type NamespaceDeletionNeeds, namespaceDeletion } from '../apiserver/namespace-deletion.ts'
import { policyStatusController } from '../apiserver/policies/policy-status-controller.ts'
import { type QuotaControllerNeeds, resourceQuotaController } from '../apiserver/quota/quota-controller.ts'
import type { ControllerConfiguration } from '../configuration/configuration.ts'
import {
  type NamespaceAccessNeeds,
  namespaceAccessController,
} from '../controllers/accounts-and-roles/namespace-access-controller.ts'
import { roleAggregationController } from '../controllers/accounts-and-roles/role-aggregation-controller.ts'

import { autoscalerMetrics } from '../controllers/autoscaling/autoscaler-metrics.ts'
import { type AutoscalerNeeds, horizontalPodAutoscaler } from '../controllers/autoscaling/horizontal-controller.ts'
import { loadBalancerController } from '../controllers/balancers/load-balancer-controller.ts'
import { type CertificateNeeds, certificateController } from '../controllers/certificates/certificate-controller.ts'
import { tokenCleaner } from '../controllers/certificates/token-cleaner.ts'
import { definitionController } from '../controllers/custom-kinds/definition-controller.ts'
import { endpointsController } from '../controllers/endpoints/endpoints-controller.ts'
import { defaultEventCleanup, eventCleanup } from '../controllers/event-cleanup.ts'
import { flowSchemaController } from '../controllers/flow-schema-controller.ts'
import { type GarbageCollectorNeeds, garbageCollector } from '../controllers/garbage/garbage-collector.ts'
import { ingressController } from '../controllers/ingress/ingress-controller.ts'
import { type MaintenanceNeeds, maintenanceController } from '../controllers/maintenance/maintenance-controller.ts'
import { maintenanceMetrics } from '../controllers/maintenance/maintenance-metrics.ts'
import { nodeIpamController } from '../controllers/node-ipam-controller.ts'
import {
  type NodeLifecycleNeeds,
  nodeLifecycleController,
} from '../controllers/node-lifecycle/node-lifecycle-controller.ts'
import { disruptionController } from '../controllers/pods/disruption-controller.ts'
import { podCleanupController } from '../controllers/pods/pod-cleanup-controller.ts'
import { type TaintEvictionNeeds, taintEvictionController } from '../controllers/pods/taint-eviction-controller.ts'
import { rebootRequestController } from '../controllers/reboots/reboot-request-controller.ts'
import { rolloutController } from '../controllers/rollouts/rollout-controller.ts'
import { rolloutMetrics } from '../controllers/rollouts/rollout-metrics.ts'
import { serviceAllocationController } from '../controllers/service-allocation-controller.ts'
import { type VolumeControllerNeeds, volumeControllers } from '../controllers/volumes/volume-controllers.ts'
import { type WorkloadNeeds, workloadControllers } from '../controllers/workloads/workload-controllers.ts'
import { workloadMetrics } from '../controllers/workloads/workload-metrics.ts'
import { type SchedulerNeeds, scheduler } from '../scheduler/scheduler.ts'
import { runningController } from '../updates/running-controller.ts'

/** The strategy of each built-in kind. */
export const kinds: { readonly [Name in BuiltInName]: KindStrategy<BuiltInTypes[Name] & AnyObject> } = {
  nodes: nodeStrategy,
  pods: podStrategy,
  namespaces: namespaceStrategy,
  configmaps: configMapStrategy,
  secrets: secretStrategy,
  events: eventStrategy,
  leases: leaseStrategy,
  certificatesigningrequests: certificateSigningRequestStrategy,
  priorityclasses: priorityClassStrategy,
  poddisruptionbudgets: podDisruptionBudgetStrategy,
  clusterrolebindings: clusterRoleBindingStrategy,
  clusterroles: clusterRoleStrategy,
  rolebindings: roleBindingStrategy,
  roles: roleStrategy,
  serviceaccounts: serviceAccountStrategy,
  services: serviceStrategy,
  endpoints: endpointsStrategy,
  endpointslices: endpointSliceStrategy,
  ingresses: ingressStrategy,
  ingressclasses: ingressClassStrategy,
  networkpolicies: networkPolicyStrategy,
  podtemplates: podTemplateStrategy,
  prioritylevelconfigurations: priorityLevelConfigurationStrategy,
  flowschemas: flowSchemaStrategy,
  controllerrevisions: controllerRevisionStrategy,
  jobs: jobStrategy,
  cronjobs: cronJobStrategy,
  replicationcontrollers: replicationControllerStrategy,
  replicasets: replicaSetStrategy,
  deployments: deploymentStrategy,
  daemonsets: daemonSetStrategy,
  statefulsets: statefulSetStrategy,
  horizontalpodautoscalers: horizontalPodAutoscalerStrategy,
  mutatingwebhookconfigurations: mutatingWebhookConfigurationStrategy,
  validatingwebhookconfigurations: validatingWebhookConfigurationStrategy,
  validatingadmissionpolicies: validatingAdmissionPolicyStrategy,
  validatingadmissionpolicybindings: validatingAdmissionPolicyBindingStrategy,
  limitranges: limitRangeStrategy,
  resourcequotas: resourceQuotaStrategy,
  runtimeclasses: runtimeClassStrategy,
  persistentvolumes: persistentVolumeStrategy,
  persistentvolumeclaims: persistentVolumeClaimStrategy,
  storageclasses: storageClassStrategy,
  csidrivers: csiDriverStrategy,
  csinodes: csiNodeStrategy,
  csistoragecapacities: csiStorageCapacityStrategy,
  volumeattachments: volumeAttachmentStrategy,
  customresourcedefinitions: customResourceDefinitionStrategy,
  apiservices: apiServiceStrategy,
}

export const builtInKinds: KindRegistry = resourceRegistry<KindStrategy>(Object.values<KindStrategy>(kinds), [
  eventV1Strategy,
  horizontalPodAutoscalerV1Strategy,
])

export type ControlLoopNeeds = NamespaceDeletionNeeds &
  Omit<GarbageCollectorNeeds, 'resources'> &
  CertificateNeeds &
  NamespaceAccessNeeds &
  QuotaControllerNeeds &
  Omit<WorkloadNeeds, 'workloadMetrics'> &
  Omit<AutoscalerNeeds, 'autoscalerMetrics'> &
  SchedulerNeeds &
  Pick<VolumeControllerNeeds, 'storage' | 'sessions' | 'origin' | 'backupKeys'> &
  Pick<NodeLifecycleNeeds, 'refusesNodes'> &
  Required<Pick<NodeLifecycleNeeds, 'podOverwritten'>> &
  Pick<TaintEvictionNeeds, 'unstored'> &
  Pick<MaintenanceNeeds, 'evict'> & { readonly registry: MetricsRegistry }

/** The controllers and the scheduler. */
export function controlLoops(needs: ControlLoopNeeds, configuration: ControllerConfiguration): readonly Loop[] {
  const { nodeLifecycle, nodeCidrs, ipv6, taintEviction, certificates, eventLifetimeMs } = configuration
  return [
    nodeLifecycleController(needs, nodeLifecycle),
    taintEvictionController(needs, taintEviction),
    podCleanupController(needs, configuration),
    disruptionController(needs),
    garbageCollector({ ...needs, resources: needs.kinds }),
    ...(nodeCidrs ? [nodeIpamController(needs, nodeCidrs, ipv6?.clusterCIDR)] : []),
    namespaceDeletion(needs),
    kindDeletion(needs),
    definitionController(needs),
    localApiServices(needs),
    resourceQuotaController(needs),
    roleAggregationController(needs),
    flowSchemaController(needs),
    policyStatusController(needs),
    namespaceAccessController(needs),
    rebootRequestController(needs),
    rolloutController({ ...needs, metrics: rolloutMetrics(needs.registry), runningController }),
    maintenanceController({ ...needs, metrics: maintenanceMetrics(needs.registry) }),
    ...workloadControllers({ ...needs, workloadMetrics: workloadMetrics(needs.registry) }),
    ...volumeControllers(needs),
    endpointsController(needs),
    serviceAllocationController(needs, configuration),
    loadBalancerController(needs, configuration.loadBalancer, ipv6 !== undefined),
    ingressController(needs, configuration.ingress, ipv6 !== undefined),
    horizontalPodAutoscaler(
      { ...needs, autoscalerMetrics: autoscalerMetrics(needs.registry) },
      configuration.autoscaler,
    ),
    scheduler(needs),
    certificateController(needs, { ...nodeLifecycle, quarantine: certificates.quarantine }),
    tokenCleaner(needs),
    eventCleanup(needs, { ...defaultEventCleanup, lifetimeMs: eventLifetimeMs }),
  ]
}
