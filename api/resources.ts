/**
 * Kinds as rows of data: what a path, a discovery document and a store key call them, and the schema of their objects.
 * What the API does with the objects of a kind is its strategy (broker-controller/apiserver/kinds).
 */
import { type ClusterRole, ClusterRoleSchema } from './access/cluster-role.ts'
import { type ClusterRoleBinding, ClusterRoleBindingSchema } from './access/cluster-role-binding.ts'
import { type Role, RoleSchema, rbacGroup } from './access/role.ts'
import { type RoleBinding, RoleBindingSchema } from './access/role-binding.ts'
import { type ServiceAccount, ServiceAccountSchema } from './access/service-account.ts'
import {
  type MutatingWebhookConfiguration,
  MutatingWebhookConfigurationSchema,
} from './admission/mutating-webhook-configuration.ts'
import {
  type ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicySchema,
} from './admission/validating-admission-policy.ts'
import {
  type ValidatingAdmissionPolicyBinding,
  ValidatingAdmissionPolicyBindingSchema,
} from './admission/validating-admission-policy-binding.ts'
import {
  type ValidatingWebhookConfiguration,
  ValidatingWebhookConfigurationSchema,
} from './admission/validating-webhook-configuration.ts'
import { admissionGroup } from './admission/webhook.ts'
import { type HorizontalPodAutoscaler, HorizontalPodAutoscalerSchema } from './autoscaling/horizontal-pod-autoscaler.ts'
import { HorizontalPodAutoscalerV1Schema } from './autoscaling/horizontal-pod-autoscaler-v1.ts'
import { type CronJob, CronJobSchema } from './batch/cron-job.ts'
import { type Job, JobSchema } from './batch/job.ts'
import { type CertificateSigningRequest, CertificateSigningRequestSchema } from './certificate-signing-request.ts'
import { type ConfigMap, ConfigMapSchema } from './config-map.ts'
import { type ObjectReader, schemaReader } from './decode.ts'
import { type Event, EventSchema } from './event.ts'
import { EventV1Schema } from './event-v1.ts'
import { type FlowSchema, FlowSchemaSchema } from './flow-control/flow-schema.ts'
import {
  flowControlGroup,
  type PriorityLevelConfiguration,
  PriorityLevelConfigurationSchema,
} from './flow-control/priority-level-configuration.ts'
import { type Lease, LeaseSchema } from './lease.ts'
import { type LimitRange, LimitRangeSchema } from './limits/limit-range.ts'
import { type ResourceQuota, ResourceQuotaSchema } from './limits/resource-quota.ts'
import type { AnyObject } from './meta.ts'
import { type Namespace, NamespaceSchema } from './namespace.ts'
import { type EndpointSlice, EndpointSliceSchema } from './network/endpoint-slice.ts'
import { type Endpoints, EndpointsSchema } from './network/endpoints.ts'
import { type Ingress, IngressSchema, networkingGroup } from './network/ingress.ts'
import { type IngressClass, IngressClassSchema } from './network/ingress-class.ts'
import { type NetworkPolicy, NetworkPolicySchema } from './network/network-policy.ts'
import { type Service, ServiceSchema } from './network/service.ts'
import { type RuntimeClass, RuntimeClassSchema } from './node/runtime-class.ts'
import { type Node, NodeSchema } from './node.ts'
import { type Pod, PodSchema } from './pod.ts'
import { type PodDisruptionBudget, PodDisruptionBudgetSchema } from './pod-disruption-budget.ts'
import { type PriorityClass, PriorityClassSchema } from './priority-class.ts'
import { type APIService, APIServiceSchema, registrationGroup } from './registration/api-service.ts'
import type { TSchema } from './schema.ts'
import { type Secret, SecretSchema } from './secret.ts'
import { type CSIDriver, CSIDriverSchema } from './storage/csi-driver.ts'
import { type CSINode, CSINodeSchema } from './storage/csi-node.ts'
import { type CSIStorageCapacity, CSIStorageCapacitySchema } from './storage/csi-storage-capacity.ts'
import { type PersistentVolume, PersistentVolumeSchema } from './storage/persistent-volume.ts'
import { type PersistentVolumeClaim, PersistentVolumeClaimSchema } from './storage/persistent-volume-claim.ts'
import { type StorageClass, StorageClassSchema, storageGroup } from './storage/storage-class.ts'
import { type VolumeAttachment, VolumeAttachmentSchema } from './storage/volume-attachment.ts'
import {
  type CustomResourceDefinition,
  CustomResourceDefinitionSchema,
  definitionReader,
  extensionsGroup,
} from './structural/custom-resource-definition.ts'
import { type ControllerRevision, ControllerRevisionSchema } from './workloads/controller-revision.ts'
import { type DaemonSet, DaemonSetSchema } from './workloads/daemon-set.ts'
import { type Deployment, DeploymentSchema } from './workloads/deployment.ts'
import { type PodTemplate, PodTemplateSchema } from './workloads/pod-template.ts'
import { type ReplicaSet, ReplicaSetSchema } from './workloads/replica-set.ts'
import { type ReplicationController, ReplicationControllerSchema } from './workloads/replication-controller.ts'
import { type StatefulSet, StatefulSetSchema } from './workloads/stateful-set.ts'

/** Resource name (the plural in a path) of a built-in kind to the type of its objects. */
export type BuiltInTypes = {
  readonly nodes: Node
  readonly pods: Pod
  readonly namespaces: Namespace
  readonly configmaps: ConfigMap
  readonly secrets: Secret
  readonly events: Event
  readonly leases: Lease
  readonly certificatesigningrequests: CertificateSigningRequest
  readonly priorityclasses: PriorityClass
  readonly poddisruptionbudgets: PodDisruptionBudget
  readonly clusterrolebindings: ClusterRoleBinding
  readonly clusterroles: ClusterRole
  readonly rolebindings: RoleBinding
  readonly roles: Role
  readonly serviceaccounts: ServiceAccount
  readonly services: Service
  readonly endpoints: Endpoints
  readonly endpointslices: EndpointSlice
  readonly ingresses: Ingress
  readonly ingressclasses: IngressClass
  readonly networkpolicies: NetworkPolicy
  readonly podtemplates: PodTemplate
  readonly prioritylevelconfigurations: PriorityLevelConfiguration
  readonly flowschemas: FlowSchema
  readonly controllerrevisions: ControllerRevision
  readonly jobs: Job
  readonly cronjobs: CronJob
  readonly replicationcontrollers: ReplicationController
  readonly replicasets: ReplicaSet
  readonly deployments: Deployment
  readonly daemonsets: DaemonSet
  readonly statefulsets: StatefulSet
  readonly horizontalpodautoscalers: HorizontalPodAutoscaler
  readonly mutatingwebhookconfigurations: MutatingWebhookConfiguration
  readonly validatingwebhookconfigurations: ValidatingWebhookConfiguration
  readonly validatingadmissionpolicies: ValidatingAdmissionPolicy
  readonly validatingadmissionpolicybindings: ValidatingAdmissionPolicyBinding
  readonly limitranges: LimitRange
  readonly resourcequotas: ResourceQuota
  readonly runtimeclasses: RuntimeClass
  readonly persistentvolumes: PersistentVolume
  readonly persistentvolumeclaims: PersistentVolumeClaim
  readonly storageclasses: StorageClass
  readonly csidrivers: CSIDriver
  readonly csinodes: CSINode
  readonly csistoragecapacities: CSIStorageCapacity
  readonly volumeattachments: VolumeAttachment
  readonly customresourcedefinitions: CustomResourceDefinition
  readonly apiservices: APIService
}
export type BuiltInName = keyof BuiltInTypes

/** `plural.group`, as CustomResourceDefinitions are named: no built-in name has a dot. */
export type CustomResourceName = `${string}.${string}`

/** Whether a name is that of a kind that is not built in. */
export function isCustomName(name: string): name is CustomResourceName {
  return name.includes('.')
}

/** Typed objects for the built-in kinds; any object for a kind that is registered at run time. */
export type ResourceTypes = BuiltInTypes & { readonly [name: CustomResourceName]: AnyObject }
export type ResourceName = BuiltInName | CustomResourceName

export type Resource = {
  /** What store, watches and controllers call it. */
  readonly id: ResourceName
  /** The plural in a path. */
  readonly name: string
  readonly singular: string
  readonly kind: string
  /** '' for the core group. */
  readonly group: string
  readonly version: string
  readonly namespaced: boolean
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  /** `metadata.generation` counts changes of the specification. */
  readonly counted: boolean
  /** It counts changes of the status, too: the status is not written apart. */
  readonly countsStatus?: true
  /** The kind of its lists; undefined: its own with `List`. */
  readonly listKind?: string
  readonly schema: TSchema
  /** Reads the objects that clients send. */
  readonly reader: ObjectReader
}

/** The kinds that are served. Router, discovery, store, namespace deletion and garbage collector are given one. */
export interface ResourceRegistry<Row extends Resource = Resource> {
  readonly all: readonly Row[]
  /** With those that are other forms of the objects of `all`: what clients see. */
  readonly served: readonly Row[]
  get(id: string): Row | undefined
  /** By the parts of a path. */
  at(group: string, version: string, plural: string): Row | undefined
  /** By what an object or an owner reference states. */
  ofKind(apiVersion: string, kind: string): Row | undefined
}

/** `otherForms`: have the id of a row whose objects they show. Throws TypeError when two rows have the same id, path or kind. */
export function resourceRegistry<Row extends Resource>(
  rows: readonly Row[],
  otherForms: readonly Row[] = [],
): ResourceRegistry<Row> {
  const [ids, paths, kinds] = [new Map<string, Row>(), new Map<string, Row>(), new Map<string, Row>()]
  const add = (map: Map<string, Row>, key: string, row: Row) => {
    if (map.has(key)) throw new TypeError(`Two resources are registered as ${key}`)
    map.set(key, row)
  }
  const served = [...rows, ...otherForms]
  for (const row of rows) add(ids, row.id, row)
  for (const row of served) {
    add(paths, `${row.group}/${row.version}/${row.name}`, row)
    add(kinds, `${apiVersionOf(row)} ${row.kind}`, row)
  }
  return {
    all: rows,
    served,
    get: (id) => ids.get(id),
    at: (group, version, plural) => paths.get(`${group}/${version}/${plural}`),
    ofKind: (apiVersion, kind) => kinds.get(`${apiVersion} ${kind}`),
  }
}

const autoscaler = { namespaced: true, shortNames: ['hpa'], categories: ['all'] }
const workload = { namespaced: true, counted: true, categories: ['all'] }

export const resources: { readonly [Name in BuiltInName]: Resource & { readonly id: Name } } = {
  nodes: row('nodes', 'Node', '', NodeSchema, {
    shortNames: ['no'],
  }),
  pods: row('pods', 'Pod', '', PodSchema, {
    namespaced: true,
    shortNames: ['po'],
    categories: ['all'],
  }),
  namespaces: row('namespaces', 'Namespace', '', NamespaceSchema, {
    shortNames: ['ns'],
  }),
  configmaps: row('configmaps', 'ConfigMap', '', ConfigMapSchema, { namespaced: true, shortNames: ['cm'] }),
  secrets: row('secrets', 'Secret', '', SecretSchema, { namespaced: true }),
  events: row('events', 'Event', '', EventSchema, { namespaced: true, shortNames: ['ev'] }),
  leases: row('leases', 'Lease', 'coordination.k8s.io', LeaseSchema, { namespaced: true }),
  certificatesigningrequests: row(
    'certificatesigningrequests',
    'CertificateSigningRequest',
    'certificates.k8s.io',
    CertificateSigningRequestSchema,
    { shortNames: ['csr'] },
  ),
  priorityclasses: row('priorityclasses', 'PriorityClass', 'scheduling.k8s.io', PriorityClassSchema, {
    shortNames: ['pc'],
  }),
  poddisruptionbudgets: row('poddisruptionbudgets', 'PodDisruptionBudget', 'policy', PodDisruptionBudgetSchema, {
    namespaced: true,
    shortNames: ['pdb'],
    counted: true,
  }),
  clusterrolebindings: row('clusterrolebindings', 'ClusterRoleBinding', rbacGroup, ClusterRoleBindingSchema, {}),
  clusterroles: row('clusterroles', 'ClusterRole', rbacGroup, ClusterRoleSchema, {}),
  rolebindings: row('rolebindings', 'RoleBinding', rbacGroup, RoleBindingSchema, { namespaced: true }),
  roles: row('roles', 'Role', rbacGroup, RoleSchema, { namespaced: true }),
  serviceaccounts: row('serviceaccounts', 'ServiceAccount', '', ServiceAccountSchema, {
    namespaced: true,
    shortNames: ['sa'],
  }),
  services: row('services', 'Service', '', ServiceSchema, {
    namespaced: true,
    shortNames: ['svc'],
    categories: ['all'],
  }),
  endpoints: row('endpoints', 'Endpoints', '', EndpointsSchema, { namespaced: true, shortNames: ['ep'] }),
  prioritylevelconfigurations: row(
    'prioritylevelconfigurations',
    'PriorityLevelConfiguration',
    flowControlGroup,
    PriorityLevelConfigurationSchema,
    { counted: true },
  ),
  flowschemas: row('flowschemas', 'FlowSchema', flowControlGroup, FlowSchemaSchema, { counted: true }),
  podtemplates: row('podtemplates', 'PodTemplate', '', PodTemplateSchema, { namespaced: true }),
  controllerrevisions: row('controllerrevisions', 'ControllerRevision', 'apps', ControllerRevisionSchema, {
    namespaced: true,
  }),
  jobs: row('jobs', 'Job', 'batch', JobSchema, { namespaced: true, categories: ['all'], counted: true }),
  cronjobs: row('cronjobs', 'CronJob', 'batch', CronJobSchema, {
    namespaced: true,
    shortNames: ['cj'],
    categories: ['all'],
    counted: true,
  }),
  replicationcontrollers: row('replicationcontrollers', 'ReplicationController', '', ReplicationControllerSchema, {
    ...workload,
    shortNames: ['rc'],
  }),
  replicasets: row('replicasets', 'ReplicaSet', 'apps', ReplicaSetSchema, { ...workload, shortNames: ['rs'] }),
  deployments: row('deployments', 'Deployment', 'apps', DeploymentSchema, { ...workload, shortNames: ['deploy'] }),
  daemonsets: row('daemonsets', 'DaemonSet', 'apps', DaemonSetSchema, { ...workload, shortNames: ['ds'] }),
  statefulsets: row('statefulsets', 'StatefulSet', 'apps', StatefulSetSchema, { ...workload, shortNames: ['sts'] }),
  horizontalpodautoscalers: row(
    'horizontalpodautoscalers',
    'HorizontalPodAutoscaler',
    'autoscaling',
    HorizontalPodAutoscalerSchema,
    { ...autoscaler, version: 'v2' },
  ),
  limitranges: row('limitranges', 'LimitRange', '', LimitRangeSchema, { namespaced: true, shortNames: ['limits'] }),
  resourcequotas: row('resourcequotas', 'ResourceQuota', '', ResourceQuotaSchema, {
    namespaced: true,
    shortNames: ['quota'],
  }),
  runtimeclasses: row('runtimeclasses', 'RuntimeClass', 'node.k8s.io', RuntimeClassSchema, {}),
  mutatingwebhookconfigurations: row(
    'mutatingwebhookconfigurations',
    'MutatingWebhookConfiguration',
    admissionGroup,
    MutatingWebhookConfigurationSchema,
    { counted: true, categories: ['api-extensions'] },
  ),
  validatingwebhookconfigurations: row(
    'validatingwebhookconfigurations',
    'ValidatingWebhookConfiguration',
    admissionGroup,
    ValidatingWebhookConfigurationSchema,
    { counted: true, categories: ['api-extensions'] },
  ),
  validatingadmissionpolicies: row(
    'validatingadmissionpolicies',
    'ValidatingAdmissionPolicy',
    admissionGroup,
    ValidatingAdmissionPolicySchema,
    { counted: true, categories: ['api-extensions'] },
  ),
  validatingadmissionpolicybindings: row(
    'validatingadmissionpolicybindings',
    'ValidatingAdmissionPolicyBinding',
    admissionGroup,
    ValidatingAdmissionPolicyBindingSchema,
    { counted: true, categories: ['api-extensions'] },
  ),
  endpointslices: row('endpointslices', 'EndpointSlice', 'discovery.k8s.io', EndpointSliceSchema, {
    namespaced: true,
    counted: true,
  }),
  ingresses: row('ingresses', 'Ingress', networkingGroup, IngressSchema, {
    namespaced: true,
    shortNames: ['ing'],
    counted: true,
  }),
  persistentvolumes: row('persistentvolumes', 'PersistentVolume', '', PersistentVolumeSchema, { shortNames: ['pv'] }),
  persistentvolumeclaims: row('persistentvolumeclaims', 'PersistentVolumeClaim', '', PersistentVolumeClaimSchema, {
    namespaced: true,
    shortNames: ['pvc'],
  }),
  storageclasses: row('storageclasses', 'StorageClass', storageGroup, StorageClassSchema, { shortNames: ['sc'] }),
  csidrivers: row('csidrivers', 'CSIDriver', storageGroup, CSIDriverSchema, { counted: true }),
  csinodes: row('csinodes', 'CSINode', storageGroup, CSINodeSchema, {}),
  csistoragecapacities: row('csistoragecapacities', 'CSIStorageCapacity', storageGroup, CSIStorageCapacitySchema, {
    namespaced: true,
  }),
  volumeattachments: row('volumeattachments', 'VolumeAttachment', storageGroup, VolumeAttachmentSchema, {}),
  ingressclasses: row('ingressclasses', 'IngressClass', networkingGroup, IngressClassSchema, { counted: true }),
  customresourcedefinitions: row(
    'customresourcedefinitions',
    'CustomResourceDefinition',
    extensionsGroup,
    CustomResourceDefinitionSchema,
    { counted: true, shortNames: ['crd', 'crds'], categories: ['api-extensions'], reader: definitionReader },
  ),
  apiservices: row('apiservices', 'APIService', registrationGroup, APIServiceSchema, {
    categories: ['api-extensions'],
  }),
  networkpolicies: row('networkpolicies', 'NetworkPolicy', networkingGroup, NetworkPolicySchema, {
    namespaced: true,
    shortNames: ['netpol'],
    counted: true,
  }),
}

/** Objects of one resource that another group or version serves, too. */
export const otherForms = {
  events: row('events', 'Event', 'events.k8s.io', EventV1Schema, { namespaced: true, shortNames: ['ev'] }),
  horizontalpodautoscalers: row(
    'horizontalpodautoscalers',
    'HorizontalPodAutoscaler',
    'autoscaling',
    HorizontalPodAutoscalerV1Schema,
    autoscaler,
  ),
}

export const builtInResources: ResourceRegistry = resourceRegistry(Object.values<Resource>(resources))

/** The name in the store of a kind that may be stored: the custom ones without their definitions, too. undefined: of another program. */
export function storedName(id: string, resources: Pick<ResourceRegistry, 'get'>): ResourceName | undefined {
  return resources.get(id)?.id ?? (isCustomName(id) ? id : undefined)
}

/** `v1`, `coordination.k8s.io/v1`. */
export function apiVersionOf({ group, version }: Pick<Resource, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`
}

/** The row of a kind that is not built in. `plural` and `group` name it in the store. */
export function customResource(
  plural: string,
  kind: string,
  group: string,
  schema: TSchema,
  more: Partial<Resource> = {},
): Resource {
  return row(`${plural}.${group}`, kind, group, schema, { ...more, name: plural })
}

function row<Name extends ResourceName>(
  id: Name,
  kind: string,
  group: string,
  schema: TSchema,
  more: Partial<Resource>,
): Resource & { readonly id: Name } {
  return {
    name: id,
    singular: kind.toLowerCase(),
    namespaced: false,
    shortNames: [],
    categories: [],
    counted: false,
    version: 'v1',
    ...more,
    id,
    kind,
    group,
    schema,
    reader: more.reader ?? schemaReader(schema),
  }
}
