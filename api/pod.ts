/**
 * core/v1 Pod: every field of Kubernetes 1.32, so that a manifest written for it is understood whole. What a node of
 * ours cannot run yet is refused by name (api/validation), never dropped in silence.
 */
import { LabelSelectorSchema, LocalObjectReferenceSchema, ObjectMetaSchema } from './meta.ts'
import {
  anything,
  atomic,
  bool,
  type Described,
  field,
  inside,
  integer,
  intOrString,
  list,
  listBy,
  mapOf,
  object,
  oneOf,
  optional,
  pointer,
  quantity,
  text,
  time,
} from './schema.ts'
import { EphemeralVolumeSourceSchema } from './storage/persistent-volume-claim.ts'
import { NFSVolumeSourceSchema } from './storage/volume-source.ts'

export const TolerationSchema = object('core.v1.Toleration', {
  key: field(1, optional(text)),
  operator: field(2, optional(text)),
  value: field(3, optional(text)),
  effect: field(4, optional(text)),
  tolerationSeconds: pointer(5, optional(integer)),
})
export type Toleration = Described<typeof TolerationSchema>

const ResourceRequirementsSchema = object('core.v1.ResourceRequirements', {
  limits: field(1, optional(mapOf(quantity))),
  requests: field(2, optional(mapOf(quantity))),
  claims: field(
    3,
    optional(
      listBy('name', object('core.v1.ResourceClaim', { name: field(1, text), request: field(2, optional(text)) }), {
        patch: 'whole',
      }),
    ),
  ),
})
export type ResourceRequirements = Described<typeof ResourceRequirementsSchema>

const keySelector = {
  name: field([1, 1], optional(text)),
  key: field(2, text),
  optional: pointer(3, optional(bool)),
}
const fieldRef = atomic(
  object('core.v1.ObjectFieldSelector', {
    apiVersion: field(1, optional(text)),
    fieldPath: field(2, text),
  }),
)
const resourceFieldRef = atomic(
  object('core.v1.ResourceFieldSelector', {
    containerName: field(1, optional(text)),
    resource: field(2, text),
    divisor: field(3, optional(quantity)),
  }),
)

const EnvVarSchema = object('core.v1.EnvVar', {
  name: field(1, text),
  value: field(2, optional(text)),
  valueFrom: field(
    3,
    optional(
      object('core.v1.EnvVarSource', {
        fieldRef: field(1, optional(fieldRef)),
        resourceFieldRef: field(2, optional(resourceFieldRef)),
        configMapKeyRef: field(3, optional(atomic(object('core.v1.ConfigMapKeySelector', keySelector)))),
        secretKeyRef: field(4, optional(atomic(object('core.v1.SecretKeySelector', keySelector)))),
      }),
    ),
  ),
})
export type EnvVar = Described<typeof EnvVarSchema>

const envFromSource = object('core.v1.EnvFromSource', {
  prefix: field(1, optional(text)),
  configMapRef: field(
    2,
    optional(
      object('core.v1.ConfigMapEnvSource', {
        name: field([1, 1], optional(text)),
        optional: pointer(2, optional(bool)),
      }),
    ),
  ),
  secretRef: field(
    3,
    optional(
      object('core.v1.SecretEnvSource', { name: field([1, 1], optional(text)), optional: pointer(2, optional(bool)) }),
    ),
  ),
})

const ContainerPortSchema = object('core.v1.ContainerPort', {
  name: field(1, optional(text)),
  hostPort: field(2, optional(integer)),
  containerPort: field(3, integer),
  protocol: field(4, optional(text)),
  hostIP: field(5, optional(text)),
})
export type ContainerPort = Described<typeof ContainerPortSchema>

const volumeMount = object('core.v1.VolumeMount', {
  name: field(1, text),
  readOnly: field(2, optional(bool)),
  mountPath: field(3, text),
  subPath: field(4, optional(text)),
  mountPropagation: pointer(5, optional(text)),
  subPathExpr: field(6, optional(text)),
  recursiveReadOnly: pointer(7, optional(text)),
})

const httpHeader = object('core.v1.HTTPHeader', { name: field(1, text), value: field(2, text) })
const execAction = object('core.v1.ExecAction', { command: field(1, optional(list(text))) })
const httpGetAction = object('core.v1.HTTPGetAction', {
  path: field(1, optional(text)),
  port: field(2, intOrString),
  host: field(3, optional(text)),
  scheme: field(4, optional(text)),
  httpHeaders: field(5, optional(list(httpHeader))),
})
const tcpSocketAction = object('core.v1.TCPSocketAction', {
  port: field(1, intOrString),
  host: field(2, optional(text)),
})

const ProbeSchema = object('core.v1.Probe', {
  exec: field([1, 1], optional(execAction)),
  httpGet: field([1, 2], optional(httpGetAction)),
  tcpSocket: field([1, 3], optional(tcpSocketAction)),
  grpc: field(
    [1, 4],
    optional(object('core.v1.GRPCAction', { port: field(1, integer), service: pointer(2, optional(text)) })),
  ),
  initialDelaySeconds: field(2, optional(integer)),
  timeoutSeconds: field(3, optional(integer)),
  periodSeconds: field(4, optional(integer)),
  successThreshold: field(5, optional(integer)),
  failureThreshold: field(6, optional(integer)),
  terminationGracePeriodSeconds: pointer(7, optional(integer)),
})
export type Probe = Described<typeof ProbeSchema>

const lifecycleHandler = object('core.v1.LifecycleHandler', {
  exec: field(1, optional(execAction)),
  httpGet: field(2, optional(httpGetAction)),
  tcpSocket: field(3, optional(tcpSocketAction)),
  sleep: field(4, optional(object('core.v1.SleepAction', { seconds: field(1, integer) }))),
})
const lifecycle = object('core.v1.Lifecycle', {
  postStart: field(1, optional(lifecycleHandler)),
  preStop: field(2, optional(lifecycleHandler)),
})

const seLinuxOptions = object('core.v1.SELinuxOptions', {
  user: field(1, optional(text)),
  role: field(2, optional(text)),
  type: field(3, optional(text)),
  level: field(4, optional(text)),
})
const windowsOptions = object('core.v1.WindowsSecurityContextOptions', {
  gmsaCredentialSpecName: pointer(1, optional(text)),
  gmsaCredentialSpec: pointer(2, optional(text)),
  runAsUserName: pointer(3, optional(text)),
  hostProcess: pointer(4, optional(bool)),
})
const profile = { type: field(1, text), localhostProfile: pointer(2, optional(text)) }

const SecurityContextSchema = object('core.v1.SecurityContext', {
  capabilities: field(
    1,
    optional(
      object('core.v1.Capabilities', { add: field(1, optional(list(text))), drop: field(2, optional(list(text))) }),
    ),
  ),
  privileged: pointer(2, optional(bool)),
  seLinuxOptions: field(3, optional(seLinuxOptions)),
  windowsOptions: field(10, optional(windowsOptions)),
  runAsUser: pointer(4, optional(integer)),
  runAsGroup: pointer(8, optional(integer)),
  runAsNonRoot: pointer(5, optional(bool)),
  readOnlyRootFilesystem: pointer(6, optional(bool)),
  allowPrivilegeEscalation: pointer(7, optional(bool)),
  procMount: pointer(9, optional(text)),
  seccompProfile: field(11, optional(object('core.v1.SeccompProfile', profile))),
  appArmorProfile: field(12, optional(object('core.v1.AppArmorProfile', profile))),
})
export type SecurityContext = Described<typeof SecurityContextSchema>

const containerFields = {
  name: field(1, text),
  image: field(2, optional(text)),
  command: field(3, optional(list(text))),
  args: field(4, optional(list(text))),
  workingDir: field(5, optional(text)),
  ports: field(
    6,
    optional(listBy('containerPort', ContainerPortSchema, { keys: { containerPort: undefined, protocol: 'TCP' } })),
  ),
  envFrom: field(19, optional(list(envFromSource))),
  env: field(7, optional(listBy('name', EnvVarSchema))),
  resources: field(8, optional(ResourceRequirementsSchema)),
  resizePolicy: field(
    23,
    optional(
      list(object('core.v1.ContainerResizePolicy', { resourceName: field(1, text), restartPolicy: field(2, text) })),
    ),
  ),
  restartPolicy: pointer(24, optional(text)),
  volumeMounts: field(9, optional(listBy('mountPath', volumeMount))),
  volumeDevices: field(
    21,
    optional(
      listBy('devicePath', object('core.v1.VolumeDevice', { name: field(1, text), devicePath: field(2, text) })),
    ),
  ),
  livenessProbe: field(10, optional(ProbeSchema)),
  readinessProbe: field(11, optional(ProbeSchema)),
  startupProbe: field(22, optional(ProbeSchema)),
  lifecycle: field(12, optional(lifecycle)),
  terminationMessagePath: field(13, optional(text)),
  terminationMessagePolicy: field(20, optional(text)),
  imagePullPolicy: field(14, optional(text)),
  securityContext: field(15, optional(SecurityContextSchema)),
  stdin: field(16, optional(bool)),
  stdinOnce: field(17, optional(bool)),
  tty: field(18, optional(bool)),
}
const ContainerSchema = object('core.v1.Container', containerFields)
export type Container = Described<typeof ContainerSchema>
export const EphemeralContainerSchema = object('core.v1.EphemeralContainer', {
  ...inside(1, containerFields),
  targetContainerName: field(2, optional(text)),
})
export type EphemeralContainer = Described<typeof EphemeralContainerSchema>

const keyToPath = object('core.v1.KeyToPath', {
  key: field(1, text),
  path: field(2, text),
  mode: pointer(3, optional(integer)),
})
const downwardFile = object('core.v1.DownwardAPIVolumeFile', {
  path: field(1, text),
  fieldRef: field(2, optional(fieldRef)),
  resourceFieldRef: field(3, optional(resourceFieldRef)),
  mode: pointer(4, optional(integer)),
})
const projection = {
  name: field([1, 1], optional(text)),
  items: field(2, optional(list(keyToPath))),
  optional: pointer(4, optional(bool)),
}

const VolumeSchema = object('core.v1.Volume', {
  name: field(1, text),
  hostPath: field(
    [2, 1],
    optional(object('core.v1.HostPathVolumeSource', { path: field(1, text), type: pointer(2, optional(text)) })),
  ),
  emptyDir: field(
    [2, 2],
    optional(
      object('core.v1.EmptyDirVolumeSource', {
        medium: field(1, optional(text)),
        sizeLimit: field(2, optional(quantity)),
      }),
    ),
  ),
  secret: field(
    [2, 6],
    optional(
      object('core.v1.SecretVolumeSource', {
        secretName: field(1, optional(text)),
        items: field(2, optional(list(keyToPath))),
        defaultMode: pointer(3, optional(integer)),
        optional: pointer(4, optional(bool)),
      }),
    ),
  ),
  configMap: field(
    [2, 19],
    optional(
      object('core.v1.ConfigMapVolumeSource', {
        name: field([1, 1], optional(text)),
        items: field(2, optional(list(keyToPath))),
        defaultMode: pointer(3, optional(integer)),
        optional: pointer(4, optional(bool)),
      }),
    ),
  ),
  downwardAPI: field(
    [2, 16],
    optional(
      object('core.v1.DownwardAPIVolumeSource', {
        items: field(1, optional(list(downwardFile))),
        defaultMode: pointer(2, optional(integer)),
      }),
    ),
  ),
  projected: field(
    [2, 26],
    optional(
      object('core.v1.ProjectedVolumeSource', {
        sources: field(
          1,
          optional(
            list(
              object('core.v1.VolumeProjection', {
                secret: field(1, optional(object('core.v1.SecretProjection', projection))),
                configMap: field(3, optional(object('core.v1.ConfigMapProjection', projection))),
                downwardAPI: field(
                  2,
                  optional(object('core.v1.DownwardAPIProjection', { items: field(1, optional(list(downwardFile))) })),
                ),
                serviceAccountToken: field(
                  4,
                  optional(
                    object('core.v1.ServiceAccountTokenProjection', {
                      audience: field(1, optional(text)),
                      expirationSeconds: pointer(2, optional(integer)),
                      path: field(3, text),
                    }),
                  ),
                ),
                clusterTrustBundle: pointer(5, optional(anything)),
              }),
            ),
          ),
        ),
        defaultMode: pointer(2, optional(integer)),
      }),
    ),
  ),
  persistentVolumeClaim: field(
    [2, 10],
    optional(
      object('core.v1.PersistentVolumeClaimVolumeSource', {
        claimName: field(1, text),
        readOnly: field(2, optional(bool)),
      }),
    ),
  ),
  csi: pointer(
    [2, 28],
    optional(
      object('core.v1.CSIVolumeSource', {
        driver: field(1, text),
        readOnly: pointer(2, optional(bool)),
        fsType: pointer(3, optional(text)),
        volumeAttributes: field(4, optional(mapOf(text))),
        nodePublishSecretRef: pointer(5, optional(LocalObjectReferenceSchema)),
      }),
    ),
  ),
  nfs: pointer([2, 7], optional(NFSVolumeSourceSchema)),
  iscsi: pointer([2, 8], optional(anything)),
  ephemeral: pointer([2, 29], optional(EphemeralVolumeSourceSchema)),
  image: pointer([2, 30], optional(anything)),
  // Known so that they are refused: what is not known here is dropped, and a volume without a source is an emptyDir.
  awsElasticBlockStore: pointer([2, 4], optional(anything)),
  azureDisk: pointer([2, 22], optional(anything)),
  azureFile: pointer([2, 18], optional(anything)),
  cephfs: pointer([2, 14], optional(anything)),
  cinder: pointer([2, 13], optional(anything)),
  fc: pointer([2, 17], optional(anything)),
  flexVolume: pointer([2, 12], optional(anything)),
  flocker: pointer([2, 15], optional(anything)),
  gcePersistentDisk: pointer([2, 3], optional(anything)),
  gitRepo: pointer([2, 5], optional(anything)),
  glusterfs: pointer([2, 9], optional(anything)),
  photonPersistentDisk: pointer([2, 23], optional(anything)),
  portworxVolume: pointer([2, 24], optional(anything)),
  quobyte: pointer([2, 21], optional(anything)),
  rbd: pointer([2, 11], optional(anything)),
  scaleIO: pointer([2, 25], optional(anything)),
  storageos: pointer([2, 27], optional(anything)),
  vsphereVolume: pointer([2, 20], optional(anything)),
})
export type Volume = Described<typeof VolumeSchema>

const NodeSelectorRequirementSchema = object('core.v1.NodeSelectorRequirement', {
  key: field(1, text),
  operator: field(2, text),
  values: field(3, optional(list(text))),
})
const NodeSelectorTermSchema = atomic(
  object('core.v1.NodeSelectorTerm', {
    matchExpressions: field(1, optional(list(NodeSelectorRequirementSchema))),
    matchFields: field(2, optional(list(NodeSelectorRequirementSchema))),
  }),
)
export type NodeSelectorTerm = Described<typeof NodeSelectorTermSchema>

export const NodeSelectorSchema = atomic(
  object('core.v1.NodeSelector', { nodeSelectorTerms: field(1, list(NodeSelectorTermSchema)) }),
)

const PodAffinityTermSchema = object('core.v1.PodAffinityTerm', {
  labelSelector: field(1, optional(LabelSelectorSchema)),
  namespaces: field(2, optional(list(text))),
  topologyKey: field(3, text),
  namespaceSelector: field(4, optional(LabelSelectorSchema)),
  matchLabelKeys: field(5, optional(list(text))),
  mismatchLabelKeys: field(6, optional(list(text))),
})
export type PodAffinityTerm = Described<typeof PodAffinityTermSchema>

const podAffinityFields = {
  requiredDuringSchedulingIgnoredDuringExecution: field(1, optional(list(PodAffinityTermSchema))),
  preferredDuringSchedulingIgnoredDuringExecution: field(
    2,
    optional(
      list(
        object('core.v1.WeightedPodAffinityTerm', {
          weight: field(1, integer),
          podAffinityTerm: field(2, PodAffinityTermSchema),
        }),
      ),
    ),
  ),
}

const AffinitySchema = object('core.v1.Affinity', {
  nodeAffinity: field(
    1,
    optional(
      object('core.v1.NodeAffinity', {
        requiredDuringSchedulingIgnoredDuringExecution: field(1, optional(NodeSelectorSchema)),
        preferredDuringSchedulingIgnoredDuringExecution: field(
          2,
          optional(
            list(
              object('core.v1.PreferredSchedulingTerm', {
                weight: field(1, integer),
                preference: field(2, NodeSelectorTermSchema),
              }),
            ),
          ),
        ),
      }),
    ),
  ),
  podAffinity: field(2, optional(object('core.v1.PodAffinity', podAffinityFields))),
  podAntiAffinity: field(3, optional(object('core.v1.PodAntiAffinity', podAffinityFields))),
})
export type Affinity = Described<typeof AffinitySchema>

const TopologySpreadConstraintSchema = object('core.v1.TopologySpreadConstraint', {
  maxSkew: field(1, integer),
  topologyKey: field(2, text),
  whenUnsatisfiable: field(3, text),
  labelSelector: field(4, optional(LabelSelectorSchema)),
  minDomains: pointer(5, optional(integer)),
  nodeAffinityPolicy: pointer(6, optional(text)),
  nodeTaintsPolicy: pointer(7, optional(text)),
  matchLabelKeys: field(8, optional(list(text))),
})
export type TopologySpreadConstraint = Described<typeof TopologySpreadConstraintSchema>

export const PodSpecSchema = object('core.v1.PodSpec', {
  volumes: field(1, optional(listBy('name', VolumeSchema, { oneSource: true }))),
  initContainers: field(20, optional(listBy('name', ContainerSchema))),
  containers: field(2, listBy('name', ContainerSchema)),
  ephemeralContainers: field(34, optional(listBy('name', EphemeralContainerSchema))),
  restartPolicy: field(3, optional(text)),
  terminationGracePeriodSeconds: pointer(4, optional(integer)),
  activeDeadlineSeconds: pointer(5, optional(integer)),
  dnsPolicy: field(6, optional(text)),
  nodeSelector: field(7, optional(atomic(mapOf(text)))),
  serviceAccountName: field(8, optional(text)),
  serviceAccount: field(9, optional(text)),
  automountServiceAccountToken: pointer(21, optional(bool)),
  nodeName: field(10, optional(text)),
  hostNetwork: field(11, optional(bool)),
  hostPID: field(12, optional(bool)),
  hostIPC: field(13, optional(bool)),
  hostUsers: pointer(37, optional(bool)),
  shareProcessNamespace: pointer(27, optional(bool)),
  securityContext: field(
    14,
    optional(
      object('core.v1.PodSecurityContext', {
        seLinuxOptions: field(1, optional(seLinuxOptions)),
        windowsOptions: field(8, optional(windowsOptions)),
        runAsUser: pointer(2, optional(integer)),
        runAsGroup: pointer(6, optional(integer)),
        runAsNonRoot: pointer(3, optional(bool)),
        supplementalGroups: field(4, optional(list(integer))),
        supplementalGroupsPolicy: pointer(12, optional(text)),
        fsGroup: pointer(5, optional(integer)),
        fsGroupChangePolicy: pointer(9, optional(text)),
        sysctls: field(7, optional(list(object('core.v1.Sysctl', { name: field(1, text), value: field(2, text) })))),
        seccompProfile: field(10, optional(object('core.v1.SeccompProfile', profile))),
        appArmorProfile: field(11, optional(object('core.v1.AppArmorProfile', profile))),
        seLinuxChangePolicy: pointer(13, optional(text)),
      }),
    ),
  ),
  imagePullSecrets: field(15, optional(listBy('name', LocalObjectReferenceSchema))),
  hostname: field(16, optional(text)),
  subdomain: field(17, optional(text)),
  setHostnameAsFQDN: pointer(35, optional(bool)),
  affinity: field(18, optional(AffinitySchema)),
  schedulerName: field(19, optional(text)),
  tolerations: field(22, optional(list(TolerationSchema))),
  hostAliases: field(
    23,
    optional(
      listBy('ip', object('core.v1.HostAlias', { ip: field(1, text), hostnames: field(2, optional(list(text))) })),
    ),
  ),
  priorityClassName: field(24, optional(text)),
  priority: pointer(25, optional(integer)),
  preemptionPolicy: pointer(31, optional(text)),
  dnsConfig: field(
    26,
    optional(
      object('core.v1.PodDNSConfig', {
        nameservers: field(1, optional(list(text))),
        searches: field(2, optional(list(text))),
        options: field(
          3,
          optional(
            list(
              object('core.v1.PodDNSConfigOption', {
                name: field(1, optional(text)),
                value: pointer(2, optional(text)),
              }),
            ),
          ),
        ),
      }),
    ),
  ),
  readinessGates: field(28, optional(list(object('core.v1.PodReadinessGate', { conditionType: field(1, text) })))),
  runtimeClassName: pointer(29, optional(text)),
  enableServiceLinks: pointer(30, optional(bool)),
  overhead: field(32, optional(mapOf(quantity))),
  topologySpreadConstraints: field(
    33,
    optional(
      listBy('topologyKey', TopologySpreadConstraintSchema, {
        keys: { topologyKey: undefined, whenUnsatisfiable: undefined },
      }),
    ),
  ),
  os: field(36, optional(object('core.v1.PodOS', { name: field(1, text) }))),
  schedulingGates: field(38, optional(listBy('name', object('core.v1.PodSchedulingGate', { name: field(1, text) })))),
  resourceClaims: field(39, optional(listBy('name', anything, { oneSource: true }))),
  resources: field(40, optional(ResourceRequirementsSchema)),
})
export type PodSpec = Described<typeof PodSpecSchema>

const ContainerStateSchema = object('core.v1.ContainerState', {
  waiting: field(
    1,
    optional(
      object('core.v1.ContainerStateWaiting', { reason: field(1, optional(text)), message: field(2, optional(text)) }),
    ),
  ),
  running: field(2, optional(object('core.v1.ContainerStateRunning', { startedAt: field(1, optional(time)) }))),
  terminated: field(
    3,
    optional(
      object('core.v1.ContainerStateTerminated', {
        exitCode: field(1, integer),
        signal: field(2, optional(integer)),
        reason: field(3, optional(text)),
        message: field(4, optional(text)),
        startedAt: field(5, optional(time)),
        finishedAt: field(6, optional(time)),
        containerID: field(7, optional(text)),
      }),
    ),
  ),
})
export type ContainerState = Described<typeof ContainerStateSchema>

const ContainerStatusSchema = object('core.v1.ContainerStatus', {
  name: field(1, text),
  state: field(2, optional(ContainerStateSchema)),
  lastState: field(3, optional(ContainerStateSchema)),
  ready: field(4, bool),
  restartCount: field(5, integer),
  image: field(6, text),
  imageID: field(7, text),
  containerID: field(8, optional(text)),
  started: pointer(9, optional(bool)),
})
export type ContainerStatus = Described<typeof ContainerStatusSchema>

const PodConditionSchema = object('core.v1.PodCondition', {
  type: field(1, text),
  status: field(2, oneOf('True', 'False', 'Unknown')),
  observedGeneration: field(7, optional(integer)),
  lastProbeTime: field(3, optional(time)),
  lastTransitionTime: field(4, optional(time)),
  reason: field(5, optional(text)),
  message: field(6, optional(text)),
})
export type PodCondition = Described<typeof PodConditionSchema>

/** On the mirror pod of a static pod. */
export const mirrorAnnotation = 'kubernetes.io/config.mirror'

export const podPhases = ['Pending', 'Running', 'Succeeded', 'Failed', 'Unknown'] as const
export type PodPhase = (typeof podPhases)[number]

export const PodStatusSchema = object('core.v1.PodStatus', {
  phase: field(1, optional(oneOf('Pending', 'Running', 'Succeeded', 'Failed', 'Unknown'))),
  conditions: field(2, optional(listBy('type', PodConditionSchema))),
  message: field(3, optional(text)),
  reason: field(4, optional(text)),
  nominatedNodeName: field(11, optional(text)),
  hostIP: field(5, optional(text)),
  hostIPs: field(16, optional(listBy('ip', object('core.v1.HostIP', { ip: field(1, text) }), { apply: 'whole' }))),
  podIP: field(6, optional(text)),
  podIPs: field(12, optional(listBy('ip', object('core.v1.PodIP', { ip: field(1, text) })))),
  startTime: field(7, optional(time)),
  initContainerStatuses: field(10, optional(list(ContainerStatusSchema))),
  containerStatuses: field(8, optional(list(ContainerStatusSchema))),
  ephemeralContainerStatuses: field(13, optional(list(ContainerStatusSchema))),
  qosClass: field(9, optional(text)),
  resize: field(14, optional(text)),
})
export type PodStatus = Described<typeof PodStatusSchema>

export const PodSchema = object({
  apiVersion: oneOf('v1'),
  kind: oneOf('Pod'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(2, PodSpecSchema),
  status: field(3, optional(PodStatusSchema)),
})
export type Pod = Described<typeof PodSchema>

/** The pods that a workload creates. */
export const PodTemplateSpecSchema = object('core.v1.PodTemplateSpec', {
  metadata: field(1, optional(ObjectMetaSchema)),
  spec: field(2, PodSpecSchema),
})
export type PodTemplateSpec = Described<typeof PodTemplateSpecSchema>
