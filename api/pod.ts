/**
 * core/v1 Pod: every field of Kubernetes 1.32, so that a manifest written for it is understood whole. What a node of
 * ours cannot run yet is refused by name (api/validation), never dropped in silence.
 */
import { LabelSelectorSchema, LocalObjectReferenceSchema, ObjectMetaSchema } from './meta.ts'
import {
  anything,
  bool,
  type Described,
  integer,
  intOrString,
  list,
  listBy,
  mapOf,
  object,
  oneOf,
  optional,
  quantity,
  text,
  time,
} from './schema.ts'

const TolerationSchema = object({
  key: optional(text),
  operator: optional(text),
  value: optional(text),
  effect: optional(text),
  tolerationSeconds: optional(integer),
})
export type Toleration = Described<typeof TolerationSchema>

const ResourceRequirementsSchema = object({
  limits: optional(mapOf(quantity)),
  requests: optional(mapOf(quantity)),
  claims: optional(listBy('name', object({ name: text, request: optional(text) }))),
})
export type ResourceRequirements = Described<typeof ResourceRequirementsSchema>

const keySelector = object({ name: optional(text), key: text, optional: optional(bool) })
const fieldRef = object({ apiVersion: optional(text), fieldPath: text })
const resourceFieldRef = object({ containerName: optional(text), resource: text, divisor: optional(quantity) })

const EnvVarSchema = object({
  name: text,
  value: optional(text),
  valueFrom: optional(
    object({
      fieldRef: optional(fieldRef),
      resourceFieldRef: optional(resourceFieldRef),
      configMapKeyRef: optional(keySelector),
      secretKeyRef: optional(keySelector),
    }),
  ),
})
export type EnvVar = Described<typeof EnvVarSchema>

const envFromSource = object({
  prefix: optional(text),
  configMapRef: optional(object({ name: optional(text), optional: optional(bool) })),
  secretRef: optional(object({ name: optional(text), optional: optional(bool) })),
})

const ContainerPortSchema = object({
  name: optional(text),
  hostPort: optional(integer),
  containerPort: integer,
  protocol: optional(text),
  hostIP: optional(text),
})
export type ContainerPort = Described<typeof ContainerPortSchema>

const volumeMount = object({
  name: text,
  readOnly: optional(bool),
  mountPath: text,
  subPath: optional(text),
  mountPropagation: optional(text),
  subPathExpr: optional(text),
  recursiveReadOnly: optional(text),
})

const httpHeader = object({ name: text, value: text })
const execAction = object({ command: optional(list(text)) })
const httpGetAction = object({
  path: optional(text),
  port: intOrString,
  host: optional(text),
  scheme: optional(text),
  httpHeaders: optional(list(httpHeader)),
})
const tcpSocketAction = object({ port: intOrString, host: optional(text) })

const ProbeSchema = object({
  exec: optional(execAction),
  httpGet: optional(httpGetAction),
  tcpSocket: optional(tcpSocketAction),
  grpc: optional(object({ port: integer, service: optional(text) })),
  initialDelaySeconds: optional(integer),
  timeoutSeconds: optional(integer),
  periodSeconds: optional(integer),
  successThreshold: optional(integer),
  failureThreshold: optional(integer),
  terminationGracePeriodSeconds: optional(integer),
})
export type Probe = Described<typeof ProbeSchema>

const lifecycleHandler = object({
  exec: optional(execAction),
  httpGet: optional(httpGetAction),
  tcpSocket: optional(tcpSocketAction),
  sleep: optional(object({ seconds: integer })),
})
const lifecycle = object({ postStart: optional(lifecycleHandler), preStop: optional(lifecycleHandler) })

const seLinuxOptions = object({
  user: optional(text),
  role: optional(text),
  type: optional(text),
  level: optional(text),
})
const windowsOptions = object({
  gmsaCredentialSpecName: optional(text),
  gmsaCredentialSpec: optional(text),
  runAsUserName: optional(text),
  hostProcess: optional(bool),
})
const profile = object({ type: text, localhostProfile: optional(text) })

const SecurityContextSchema = object({
  capabilities: optional(object({ add: optional(list(text)), drop: optional(list(text)) })),
  privileged: optional(bool),
  seLinuxOptions: optional(seLinuxOptions),
  windowsOptions: optional(windowsOptions),
  runAsUser: optional(integer),
  runAsGroup: optional(integer),
  runAsNonRoot: optional(bool),
  readOnlyRootFilesystem: optional(bool),
  allowPrivilegeEscalation: optional(bool),
  procMount: optional(text),
  seccompProfile: optional(profile),
  appArmorProfile: optional(profile),
})
export type SecurityContext = Described<typeof SecurityContextSchema>

const containerFields = {
  name: text,
  image: optional(text),
  command: optional(list(text)),
  args: optional(list(text)),
  workingDir: optional(text),
  ports: optional(listBy('containerPort', ContainerPortSchema)),
  envFrom: optional(list(envFromSource)),
  env: optional(listBy('name', EnvVarSchema)),
  resources: optional(ResourceRequirementsSchema),
  resizePolicy: optional(list(object({ resourceName: text, restartPolicy: text }))),
  restartPolicy: optional(text),
  volumeMounts: optional(listBy('mountPath', volumeMount)),
  volumeDevices: optional(listBy('devicePath', object({ name: text, devicePath: text }))),
  livenessProbe: optional(ProbeSchema),
  readinessProbe: optional(ProbeSchema),
  startupProbe: optional(ProbeSchema),
  lifecycle: optional(lifecycle),
  terminationMessagePath: optional(text),
  terminationMessagePolicy: optional(text),
  imagePullPolicy: optional(text),
  securityContext: optional(SecurityContextSchema),
  stdin: optional(bool),
  stdinOnce: optional(bool),
  tty: optional(bool),
}
const ContainerSchema = object(containerFields)
export type Container = Described<typeof ContainerSchema>
const EphemeralContainerSchema = object({ ...containerFields, targetContainerName: optional(text) })
export type EphemeralContainer = Described<typeof EphemeralContainerSchema>

const keyToPath = object({ key: text, path: text, mode: optional(integer) })
const downwardFile = object({
  path: text,
  fieldRef: optional(fieldRef),
  resourceFieldRef: optional(resourceFieldRef),
  mode: optional(integer),
})
const projection = object({
  name: optional(text),
  items: optional(list(keyToPath)),
  optional: optional(bool),
})

const VolumeSchema = object({
  name: text,
  hostPath: optional(object({ path: text, type: optional(text) })),
  emptyDir: optional(object({ medium: optional(text), sizeLimit: optional(quantity) })),
  secret: optional(
    object({
      secretName: optional(text),
      items: optional(list(keyToPath)),
      defaultMode: optional(integer),
      optional: optional(bool),
    }),
  ),
  configMap: optional(
    object({
      name: optional(text),
      items: optional(list(keyToPath)),
      defaultMode: optional(integer),
      optional: optional(bool),
    }),
  ),
  downwardAPI: optional(object({ items: optional(list(downwardFile)), defaultMode: optional(integer) })),
  projected: optional(
    object({
      sources: optional(
        list(
          object({
            secret: optional(projection),
            configMap: optional(projection),
            downwardAPI: optional(object({ items: optional(list(downwardFile)) })),
            serviceAccountToken: optional(
              object({ audience: optional(text), expirationSeconds: optional(integer), path: text }),
            ),
            clusterTrustBundle: optional(anything),
          }),
        ),
      ),
      defaultMode: optional(integer),
    }),
  ),
  persistentVolumeClaim: optional(object({ claimName: text, readOnly: optional(bool) })),
  nfs: optional(anything),
  iscsi: optional(anything),
  csi: optional(anything),
  ephemeral: optional(anything),
  image: optional(anything),
  // Known so that they are refused: what is not known here is dropped, and a volume without a source is an emptyDir.
  awsElasticBlockStore: optional(anything),
  azureDisk: optional(anything),
  azureFile: optional(anything),
  cephfs: optional(anything),
  cinder: optional(anything),
  fc: optional(anything),
  flexVolume: optional(anything),
  flocker: optional(anything),
  gcePersistentDisk: optional(anything),
  gitRepo: optional(anything),
  glusterfs: optional(anything),
  photonPersistentDisk: optional(anything),
  portworxVolume: optional(anything),
  quobyte: optional(anything),
  rbd: optional(anything),
  scaleIO: optional(anything),
  storageos: optional(anything),
  vsphereVolume: optional(anything),
})
export type Volume = Described<typeof VolumeSchema>

const NodeSelectorRequirementSchema = object({ key: text, operator: text, values: optional(list(text)) })
const NodeSelectorTermSchema = object({
  matchExpressions: optional(list(NodeSelectorRequirementSchema)),
  matchFields: optional(list(NodeSelectorRequirementSchema)),
})
export type NodeSelectorTerm = Described<typeof NodeSelectorTermSchema>

const PodAffinityTermSchema = object({
  labelSelector: optional(LabelSelectorSchema),
  namespaces: optional(list(text)),
  topologyKey: text,
  namespaceSelector: optional(LabelSelectorSchema),
  matchLabelKeys: optional(list(text)),
  mismatchLabelKeys: optional(list(text)),
})
export type PodAffinityTerm = Described<typeof PodAffinityTermSchema>

const podAffinity = object({
  requiredDuringSchedulingIgnoredDuringExecution: optional(list(PodAffinityTermSchema)),
  preferredDuringSchedulingIgnoredDuringExecution: optional(
    list(object({ weight: integer, podAffinityTerm: PodAffinityTermSchema })),
  ),
})

const AffinitySchema = object({
  nodeAffinity: optional(
    object({
      requiredDuringSchedulingIgnoredDuringExecution: optional(
        object({ nodeSelectorTerms: list(NodeSelectorTermSchema) }),
      ),
      preferredDuringSchedulingIgnoredDuringExecution: optional(
        list(object({ weight: integer, preference: NodeSelectorTermSchema })),
      ),
    }),
  ),
  podAffinity: optional(podAffinity),
  podAntiAffinity: optional(podAffinity),
})
export type Affinity = Described<typeof AffinitySchema>

const TopologySpreadConstraintSchema = object({
  maxSkew: integer,
  topologyKey: text,
  whenUnsatisfiable: text,
  labelSelector: optional(LabelSelectorSchema),
  minDomains: optional(integer),
  nodeAffinityPolicy: optional(text),
  nodeTaintsPolicy: optional(text),
  matchLabelKeys: optional(list(text)),
})
export type TopologySpreadConstraint = Described<typeof TopologySpreadConstraintSchema>

const PodSpecSchema = object({
  volumes: optional(listBy('name', VolumeSchema)),
  initContainers: optional(listBy('name', ContainerSchema)),
  containers: listBy('name', ContainerSchema),
  ephemeralContainers: optional(listBy('name', EphemeralContainerSchema)),
  restartPolicy: optional(text),
  terminationGracePeriodSeconds: optional(integer),
  activeDeadlineSeconds: optional(integer),
  dnsPolicy: optional(text),
  nodeSelector: optional(mapOf(text)),
  serviceAccountName: optional(text),
  serviceAccount: optional(text),
  automountServiceAccountToken: optional(bool),
  nodeName: optional(text),
  hostNetwork: optional(bool),
  hostPID: optional(bool),
  hostIPC: optional(bool),
  hostUsers: optional(bool),
  shareProcessNamespace: optional(bool),
  securityContext: optional(
    object({
      seLinuxOptions: optional(seLinuxOptions),
      windowsOptions: optional(windowsOptions),
      runAsUser: optional(integer),
      runAsGroup: optional(integer),
      runAsNonRoot: optional(bool),
      supplementalGroups: optional(list(integer)),
      supplementalGroupsPolicy: optional(text),
      fsGroup: optional(integer),
      fsGroupChangePolicy: optional(text),
      sysctls: optional(list(object({ name: text, value: text }))),
      seccompProfile: optional(profile),
      appArmorProfile: optional(profile),
      seLinuxChangePolicy: optional(text),
    }),
  ),
  imagePullSecrets: optional(listBy('name', LocalObjectReferenceSchema)),
  hostname: optional(text),
  subdomain: optional(text),
  setHostnameAsFQDN: optional(bool),
  affinity: optional(AffinitySchema),
  schedulerName: optional(text),
  tolerations: optional(list(TolerationSchema)),
  hostAliases: optional(listBy('ip', object({ ip: text, hostnames: optional(list(text)) }))),
  priorityClassName: optional(text),
  priority: optional(integer),
  preemptionPolicy: optional(text),
  dnsConfig: optional(
    object({
      nameservers: optional(list(text)),
      searches: optional(list(text)),
      options: optional(list(object({ name: optional(text), value: optional(text) }))),
    }),
  ),
  readinessGates: optional(list(object({ conditionType: text }))),
  runtimeClassName: optional(text),
  enableServiceLinks: optional(bool),
  overhead: optional(mapOf(quantity)),
  topologySpreadConstraints: optional(listBy('topologyKey', TopologySpreadConstraintSchema)),
  os: optional(object({ name: text })),
  schedulingGates: optional(listBy('name', object({ name: text }))),
  resourceClaims: optional(listBy('name', anything)),
  resources: optional(ResourceRequirementsSchema),
})
export type PodSpec = Described<typeof PodSpecSchema>

const ContainerStateSchema = object({
  waiting: optional(object({ reason: optional(text), message: optional(text) })),
  running: optional(object({ startedAt: optional(time) })),
  terminated: optional(
    object({
      exitCode: integer,
      signal: optional(integer),
      reason: optional(text),
      message: optional(text),
      startedAt: optional(time),
      finishedAt: optional(time),
      containerID: optional(text),
    }),
  ),
})
export type ContainerState = Described<typeof ContainerStateSchema>

const ContainerStatusSchema = object({
  name: text,
  state: optional(ContainerStateSchema),
  lastState: optional(ContainerStateSchema),
  ready: bool,
  restartCount: integer,
  image: text,
  imageID: text,
  containerID: optional(text),
  started: optional(bool),
})
export type ContainerStatus = Described<typeof ContainerStatusSchema>

const PodConditionSchema = object({
  type: text,
  status: oneOf('True', 'False', 'Unknown'),
  observedGeneration: optional(integer),
  lastProbeTime: optional(time),
  lastTransitionTime: optional(time),
  reason: optional(text),
  message: optional(text),
})
export type PodCondition = Described<typeof PodConditionSchema>

/** On a pod that shows in the API what a node runs of its own accord. */
export const mirrorAnnotation = 'kubernetes.io/config.mirror'

export const podPhases = ['Pending', 'Running', 'Succeeded', 'Failed', 'Unknown'] as const
export type PodPhase = (typeof podPhases)[number]

export const PodStatusSchema = object({
  phase: optional(oneOf('Pending', 'Running', 'Succeeded', 'Failed', 'Unknown')),
  conditions: optional(listBy('type', PodConditionSchema)),
  message: optional(text),
  reason: optional(text),
  nominatedNodeName: optional(text),
  hostIP: optional(text),
  hostIPs: optional(listBy('ip', object({ ip: text }))),
  podIP: optional(text),
  podIPs: optional(listBy('ip', object({ ip: text }))),
  startTime: optional(time),
  initContainerStatuses: optional(list(ContainerStatusSchema)),
  containerStatuses: optional(list(ContainerStatusSchema)),
  ephemeralContainerStatuses: optional(list(ContainerStatusSchema)),
  qosClass: optional(text),
  resize: optional(text),
})
export type PodStatus = Described<typeof PodStatusSchema>

export const PodSchema = object({
  apiVersion: oneOf('v1'),
  kind: oneOf('Pod'),
  metadata: ObjectMetaSchema,
  spec: PodSpecSchema,
  status: optional(PodStatusSchema),
})
export type Pod = Described<typeof PodSchema>

/** The pods that a workload creates: PodTemplateSpec. */
export const PodTemplateSchema = object({ metadata: optional(ObjectMetaSchema), spec: PodSpecSchema })
export type PodTemplate = Described<typeof PodTemplateSchema>
