/**
 * The messages of Kubernetes' API as Go clients write them: a line each, `number name:type`. Types: `s` text, `y` bytes, `i`
 * integer, `b` boolean, `{x}` map from text to x, another message; with `*` repeated, with `?` written only when it is set, so
 * that a zero means zero. The fields of `...` belong to the message around it. Names without a prefix are core/v1; statuses
 * are left out where no client has a reason to send them. Volume sources that are refused are `y`: that they are there is enough.
 */
export const protobufMessages = `
Affinity: 1 nodeAffinity:NodeAffinity, 2 podAffinity:PodAffinity, 3 podAntiAffinity:PodAntiAffinity
AppArmorProfile: 1 type:s, 2 localhostProfile:s?
Binding: 1 metadata:meta.ObjectMeta, 2 target:ObjectReference
Capabilities: 1 add:s*, 2 drop:s*
ClientIPConfig: 1 timeoutSeconds:i?
ClusterTrustBundleProjection: 1 name:s?, 2 signerName:s?, 3 labelSelector:meta.LabelSelector, 4 path:s, 5 optional:b?
ConfigMap: 1 metadata:meta.ObjectMeta, 2 data:{s}, 3 binaryData:{y}, 4 immutable:b?
ConfigMapEnvSource: 1 ...:LocalObjectReference, 2 optional:b?
ConfigMapKeySelector: 1 ...:LocalObjectReference, 2 key:s, 3 optional:b?
ConfigMapProjection: 1 ...:LocalObjectReference, 2 items:KeyToPath*, 4 optional:b?
ConfigMapVolumeSource: 1 ...:LocalObjectReference, 2 items:KeyToPath*, 3 defaultMode:i?, 4 optional:b?
Container: 1 name:s, 2 image:s, 3 command:s*, 4 args:s*, 5 workingDir:s, 6 ports:ContainerPort*, 7 env:EnvVar*, 8 resources:ResourceRequirements, 9 volumeMounts:VolumeMount*, 10 livenessProbe:Probe, 11 readinessProbe:Probe, 12 lifecycle:Lifecycle, 13 terminationMessagePath:s, 14 imagePullPolicy:s, 15 securityContext:SecurityContext, 16 stdin:b, 17 stdinOnce:b, 18 tty:b, 19 envFrom:EnvFromSource*, 20 terminationMessagePolicy:s, 21 volumeDevices:VolumeDevice*, 22 startupProbe:Probe, 23 resizePolicy:ContainerResizePolicy*, 24 restartPolicy:s?
ContainerPort: 1 name:s, 2 hostPort:i, 3 containerPort:i, 4 protocol:s, 5 hostIP:s
ContainerResizePolicy: 1 resourceName:s, 2 restartPolicy:s
DownwardAPIProjection: 1 items:DownwardAPIVolumeFile*
DownwardAPIVolumeFile: 1 path:s, 2 fieldRef:ObjectFieldSelector, 3 resourceFieldRef:ResourceFieldSelector, 4 mode:i?
DownwardAPIVolumeSource: 1 items:DownwardAPIVolumeFile*, 2 defaultMode:i?
EmptyDirVolumeSource: 1 medium:s, 2 sizeLimit:Quantity
EnvFromSource: 1 prefix:s, 2 configMapRef:ConfigMapEnvSource, 3 secretRef:SecretEnvSource
EnvVar: 1 name:s, 2 value:s, 3 valueFrom:EnvVarSource
EnvVarSource: 1 fieldRef:ObjectFieldSelector, 2 resourceFieldRef:ResourceFieldSelector, 3 configMapKeyRef:ConfigMapKeySelector, 4 secretKeyRef:SecretKeySelector
EphemeralContainer: 1 ...:EphemeralContainerCommon, 2 targetContainerName:s
EphemeralContainerCommon: 1 name:s, 2 image:s, 3 command:s*, 4 args:s*, 5 workingDir:s, 6 ports:ContainerPort*, 7 env:EnvVar*, 8 resources:ResourceRequirements, 9 volumeMounts:VolumeMount*, 10 livenessProbe:Probe, 11 readinessProbe:Probe, 12 lifecycle:Lifecycle, 13 terminationMessagePath:s, 14 imagePullPolicy:s, 15 securityContext:SecurityContext, 16 stdin:b, 17 stdinOnce:b, 18 tty:b, 19 envFrom:EnvFromSource*, 20 terminationMessagePolicy:s, 21 volumeDevices:VolumeDevice*, 22 startupProbe:Probe, 23 resizePolicy:ContainerResizePolicy*, 24 restartPolicy:s?
Event: 1 metadata:meta.ObjectMeta, 2 involvedObject:ObjectReference, 3 reason:s, 4 message:s, 5 source:EventSource, 6 firstTimestamp:Time, 7 lastTimestamp:Time, 8 count:i, 9 type:s, 10 eventTime:MicroTime, 11 series:EventSeries, 12 action:s, 13 related:ObjectReference, 14 reportingComponent:s, 15 reportingInstance:s
EventSeries: 1 count:i, 2 lastObservedTime:MicroTime
EventSource: 1 component:s, 2 host:s
ExecAction: 1 command:s*
GRPCAction: 1 port:i, 2 service:s?
HTTPGetAction: 1 path:s, 2 port:IntOrString, 3 host:s, 4 scheme:s, 5 httpHeaders:HTTPHeader*
HTTPHeader: 1 name:s, 2 value:s
HostAlias: 1 ip:s, 2 hostnames:s*
HostPathVolumeSource: 1 path:s, 2 type:s?
KeyToPath: 1 key:s, 2 path:s, 3 mode:i?
Lifecycle: 1 postStart:LifecycleHandler, 2 preStop:LifecycleHandler
LifecycleHandler: 1 exec:ExecAction, 2 httpGet:HTTPGetAction, 3 tcpSocket:TCPSocketAction, 4 sleep:SleepAction
LocalObjectReference: 1 name:s
Namespace: 1 metadata:meta.ObjectMeta, 2 spec:NamespaceSpec
NamespaceSpec: 1 finalizers:s*
NodeAffinity: 1 requiredDuringSchedulingIgnoredDuringExecution:NodeSelector, 2 preferredDuringSchedulingIgnoredDuringExecution:PreferredSchedulingTerm*
NodeSelector: 1 nodeSelectorTerms:NodeSelectorTerm*
NodeSelectorRequirement: 1 key:s, 2 operator:s, 3 values:s*
NodeSelectorTerm: 1 matchExpressions:NodeSelectorRequirement*, 2 matchFields:NodeSelectorRequirement*
ObjectFieldSelector: 1 apiVersion:s, 2 fieldPath:s
ObjectReference: 1 kind:s, 2 namespace:s, 3 name:s, 4 uid:s, 5 apiVersion:s, 6 resourceVersion:s, 7 fieldPath:s
PersistentVolumeClaimVolumeSource: 1 claimName:s, 2 readOnly:b
Pod: 1 metadata:meta.ObjectMeta, 2 spec:PodSpec
PodAffinity: 1 requiredDuringSchedulingIgnoredDuringExecution:PodAffinityTerm*, 2 preferredDuringSchedulingIgnoredDuringExecution:WeightedPodAffinityTerm*
PodAffinityTerm: 1 labelSelector:meta.LabelSelector, 2 namespaces:s*, 3 topologyKey:s, 4 namespaceSelector:meta.LabelSelector, 5 matchLabelKeys:s*, 6 mismatchLabelKeys:s*
PodAntiAffinity: 1 requiredDuringSchedulingIgnoredDuringExecution:PodAffinityTerm*, 2 preferredDuringSchedulingIgnoredDuringExecution:WeightedPodAffinityTerm*
PodDNSConfig: 1 nameservers:s*, 2 searches:s*, 3 options:PodDNSConfigOption*
PodDNSConfigOption: 1 name:s, 2 value:s?
PodOS: 1 name:s
PodReadinessGate: 1 conditionType:s
PodSchedulingGate: 1 name:s
PodSecurityContext: 1 seLinuxOptions:SELinuxOptions, 2 runAsUser:i?, 3 runAsNonRoot:b?, 4 supplementalGroups:i*, 5 fsGroup:i?, 6 runAsGroup:i?, 7 sysctls:Sysctl*, 8 windowsOptions:WindowsSecurityContextOptions, 9 fsGroupChangePolicy:s?, 10 seccompProfile:SeccompProfile, 11 appArmorProfile:AppArmorProfile, 12 supplementalGroupsPolicy:s?, 13 seLinuxChangePolicy:s?
PodSpec: 1 volumes:Volume*, 2 containers:Container*, 3 restartPolicy:s, 4 terminationGracePeriodSeconds:i?, 5 activeDeadlineSeconds:i?, 6 dnsPolicy:s, 7 nodeSelector:{s}, 8 serviceAccountName:s, 9 serviceAccount:s, 10 nodeName:s, 11 hostNetwork:b, 12 hostPID:b, 13 hostIPC:b, 14 securityContext:PodSecurityContext, 15 imagePullSecrets:LocalObjectReference*, 16 hostname:s, 17 subdomain:s, 18 affinity:Affinity, 19 schedulerName:s, 20 initContainers:Container*, 21 automountServiceAccountToken:b?, 22 tolerations:Toleration*, 23 hostAliases:HostAlias*, 24 priorityClassName:s, 25 priority:i?, 26 dnsConfig:PodDNSConfig, 27 shareProcessNamespace:b?, 28 readinessGates:PodReadinessGate*, 29 runtimeClassName:s?, 30 enableServiceLinks:b?, 31 preemptionPolicy:s?, 32 overhead:{Quantity}, 33 topologySpreadConstraints:TopologySpreadConstraint*, 34 ephemeralContainers:EphemeralContainer*, 35 setHostnameAsFQDN:b?, 36 os:PodOS, 37 hostUsers:b?, 38 schedulingGates:PodSchedulingGate*, 40 resources:ResourceRequirements
PodTemplateSpec: 1 metadata:meta.ObjectMeta, 2 spec:PodSpec
PreferredSchedulingTerm: 1 weight:i, 2 preference:NodeSelectorTerm
Probe: 1 ...:ProbeHandler, 2 initialDelaySeconds:i, 3 timeoutSeconds:i, 4 periodSeconds:i, 5 successThreshold:i, 6 failureThreshold:i, 7 terminationGracePeriodSeconds:i?
ProbeHandler: 1 exec:ExecAction, 2 httpGet:HTTPGetAction, 3 tcpSocket:TCPSocketAction, 4 grpc:GRPCAction
ProjectedVolumeSource: 1 sources:VolumeProjection*, 2 defaultMode:i?
ResourceClaim: 1 name:s, 2 request:s
ResourceFieldSelector: 1 containerName:s, 2 resource:s, 3 divisor:Quantity
ResourceRequirements: 1 limits:{Quantity}, 2 requests:{Quantity}, 3 claims:ResourceClaim*
SELinuxOptions: 1 user:s, 2 role:s, 3 type:s, 4 level:s
SeccompProfile: 1 type:s, 2 localhostProfile:s?
Secret: 1 metadata:meta.ObjectMeta, 2 data:{y}, 3 type:s, 4 stringData:{s}, 5 immutable:b?
SecretEnvSource: 1 ...:LocalObjectReference, 2 optional:b?
SecretKeySelector: 1 ...:LocalObjectReference, 2 key:s, 3 optional:b?
SecretProjection: 1 ...:LocalObjectReference, 2 items:KeyToPath*, 4 optional:b?
SecretVolumeSource: 1 secretName:s, 2 items:KeyToPath*, 3 defaultMode:i?, 4 optional:b?
SecurityContext: 1 capabilities:Capabilities, 2 privileged:b?, 3 seLinuxOptions:SELinuxOptions, 4 runAsUser:i?, 5 runAsNonRoot:b?, 6 readOnlyRootFilesystem:b?, 7 allowPrivilegeEscalation:b?, 8 runAsGroup:i?, 9 procMount:s?, 10 windowsOptions:WindowsSecurityContextOptions, 11 seccompProfile:SeccompProfile, 12 appArmorProfile:AppArmorProfile
Service: 1 metadata:meta.ObjectMeta, 2 spec:ServiceSpec
ServiceAccount: 1 metadata:meta.ObjectMeta, 2 secrets:ObjectReference*, 3 imagePullSecrets:LocalObjectReference*, 4 automountServiceAccountToken:b?
ServiceAccountTokenProjection: 1 audience:s, 2 expirationSeconds:i?, 3 path:s
ServicePort: 1 name:s, 2 protocol:s, 3 port:i, 4 targetPort:IntOrString, 5 nodePort:i, 6 appProtocol:s?
ServiceSpec: 1 ports:ServicePort*, 2 selector:{s}, 3 clusterIP:s, 4 type:s, 5 externalIPs:s*, 7 sessionAffinity:s, 8 loadBalancerIP:s, 9 loadBalancerSourceRanges:s*, 10 externalName:s, 11 externalTrafficPolicy:s, 12 healthCheckNodePort:i, 13 publishNotReadyAddresses:b, 14 sessionAffinityConfig:SessionAffinityConfig, 17 ipFamilyPolicy:s?, 18 clusterIPs:s*, 19 ipFamilies:s*, 20 allocateLoadBalancerNodePorts:b?, 21 loadBalancerClass:s?, 22 internalTrafficPolicy:s?, 23 trafficDistribution:s?
SessionAffinityConfig: 1 clientIP:ClientIPConfig
SleepAction: 1 seconds:i
Sysctl: 1 name:s, 2 value:s
TCPSocketAction: 1 port:IntOrString, 2 host:s
Toleration: 1 key:s, 2 operator:s, 3 value:s, 4 effect:s, 5 tolerationSeconds:i?
TopologySpreadConstraint: 1 maxSkew:i, 2 topologyKey:s, 3 whenUnsatisfiable:s, 4 labelSelector:meta.LabelSelector, 5 minDomains:i?, 6 nodeAffinityPolicy:s?, 7 nodeTaintsPolicy:s?, 8 matchLabelKeys:s*
Volume: 1 name:s, 2 ...:VolumeSource
VolumeDevice: 1 name:s, 2 devicePath:s
VolumeMount: 1 name:s, 2 readOnly:b, 3 mountPath:s, 4 subPath:s, 5 mountPropagation:s?, 6 subPathExpr:s, 7 recursiveReadOnly:s?
VolumeProjection: 1 secret:SecretProjection, 2 downwardAPI:DownwardAPIProjection, 3 configMap:ConfigMapProjection, 4 serviceAccountToken:ServiceAccountTokenProjection, 5 clusterTrustBundle:ClusterTrustBundleProjection
VolumeSource: 1 hostPath:HostPathVolumeSource, 2 emptyDir:EmptyDirVolumeSource, 3 gcePersistentDisk:y?, 4 awsElasticBlockStore:y?, 5 gitRepo:y?, 6 secret:SecretVolumeSource, 7 nfs:y?, 8 iscsi:y?, 9 glusterfs:y?, 10 persistentVolumeClaim:PersistentVolumeClaimVolumeSource, 11 rbd:y?, 12 flexVolume:y?, 13 cinder:y?, 14 cephfs:y?, 15 flocker:y?, 16 downwardAPI:DownwardAPIVolumeSource, 17 fc:y?, 18 azureFile:y?, 19 configMap:ConfigMapVolumeSource, 20 vsphereVolume:y?, 21 quobyte:y?, 22 azureDisk:y?, 23 photonPersistentDisk:y?, 24 portworxVolume:y?, 25 scaleIO:y?, 26 projected:ProjectedVolumeSource, 27 storageos:y?, 28 csi:y?, 29 ephemeral:y?, 30 image:y?
WeightedPodAffinityTerm: 1 weight:i, 2 podAffinityTerm:PodAffinityTerm
WindowsSecurityContextOptions: 1 gmsaCredentialSpecName:s?, 2 gmsaCredentialSpec:s?, 3 runAsUserName:s?, 4 hostProcess:b?
apps.v1.DaemonSet: 1 metadata:meta.ObjectMeta, 2 spec:apps.v1.DaemonSetSpec
apps.v1.DaemonSetSpec: 1 selector:meta.LabelSelector, 2 template:PodTemplateSpec, 3 updateStrategy:apps.v1.DaemonSetUpdateStrategy, 4 minReadySeconds:i, 6 revisionHistoryLimit:i?
apps.v1.DaemonSetUpdateStrategy: 1 type:s, 2 rollingUpdate:apps.v1.RollingUpdateDaemonSet
apps.v1.Deployment: 1 metadata:meta.ObjectMeta, 2 spec:apps.v1.DeploymentSpec
apps.v1.DeploymentSpec: 1 replicas:i?, 2 selector:meta.LabelSelector, 3 template:PodTemplateSpec, 4 strategy:apps.v1.DeploymentStrategy, 5 minReadySeconds:i, 6 revisionHistoryLimit:i?, 7 paused:b, 9 progressDeadlineSeconds:i?
apps.v1.DeploymentStrategy: 1 type:s, 2 rollingUpdate:apps.v1.RollingUpdateDeployment
apps.v1.RollingUpdateDaemonSet: 1 maxUnavailable:IntOrString?, 2 maxSurge:IntOrString?
apps.v1.RollingUpdateDeployment: 1 maxUnavailable:IntOrString?, 2 maxSurge:IntOrString?
authentication.v1.BoundObjectReference: 1 kind:s, 2 apiVersion:s, 3 name:s, 4 uid:s
authentication.v1.SelfSubjectReview: 1 metadata:meta.ObjectMeta
authentication.v1.TokenRequest: 1 metadata:meta.ObjectMeta, 2 spec:authentication.v1.TokenRequestSpec, 3 status:authentication.v1.TokenRequestStatus
authentication.v1.TokenRequestSpec: 1 audiences:s*, 3 boundObjectRef:authentication.v1.BoundObjectReference, 4 expirationSeconds:i?
authentication.v1.TokenRequestStatus: 1 token:s, 2 expirationTimestamp:Time
authentication.v1.TokenReview: 1 metadata:meta.ObjectMeta, 2 spec:authentication.v1.TokenReviewSpec
authentication.v1.TokenReviewSpec: 1 token:s, 2 audiences:s*
authorization.v1.FieldSelectorAttributes: 1 rawSelector:s, 2 requirements:meta.FieldSelectorRequirement*
authorization.v1.LabelSelectorAttributes: 1 rawSelector:s, 2 requirements:meta.LabelSelectorRequirement*
authorization.v1.NonResourceAttributes: 1 path:s, 2 verb:s
authorization.v1.NonResourceRule: 1 verbs:s*, 2 nonResourceURLs:s*
authorization.v1.ResourceAttributes: 1 namespace:s, 2 verb:s, 3 group:s, 4 version:s, 5 resource:s, 6 subresource:s, 7 name:s, 8 fieldSelector:authorization.v1.FieldSelectorAttributes, 9 labelSelector:authorization.v1.LabelSelectorAttributes
authorization.v1.ResourceRule: 1 verbs:s*, 2 apiGroups:s*, 3 resources:s*, 4 resourceNames:s*
authorization.v1.SelfSubjectAccessReview: 1 metadata:meta.ObjectMeta, 2 spec:authorization.v1.SelfSubjectAccessReviewSpec, 3 status:authorization.v1.SubjectAccessReviewStatus
authorization.v1.SelfSubjectAccessReviewSpec: 1 resourceAttributes:authorization.v1.ResourceAttributes, 2 nonResourceAttributes:authorization.v1.NonResourceAttributes
authorization.v1.SelfSubjectRulesReview: 1 metadata:meta.ObjectMeta, 2 spec:authorization.v1.SelfSubjectRulesReviewSpec, 3 status:authorization.v1.SubjectRulesReviewStatus
authorization.v1.SelfSubjectRulesReviewSpec: 1 namespace:s
authorization.v1.SubjectAccessReview: 1 metadata:meta.ObjectMeta, 2 spec:authorization.v1.SubjectAccessReviewSpec, 3 status:authorization.v1.SubjectAccessReviewStatus
authorization.v1.SubjectAccessReviewSpec: 1 resourceAttributes:authorization.v1.ResourceAttributes, 2 nonResourceAttributes:authorization.v1.NonResourceAttributes, 3 user:s, 4 groups:s*, 5 extra:{ExtraValue}, 6 uid:s
authorization.v1.SubjectAccessReviewStatus: 1 allowed:b, 2 reason:s, 3 evaluationError:s, 4 denied:b
authorization.v1.SubjectRulesReviewStatus: 1 resourceRules:authorization.v1.ResourceRule*, 2 nonResourceRules:authorization.v1.NonResourceRule*, 3 incomplete:b, 4 evaluationError:s
certificates.v1.CertificateSigningRequest: 1 metadata:meta.ObjectMeta, 2 spec:certificates.v1.CertificateSigningRequestSpec, 3 status:certificates.v1.CertificateSigningRequestStatus
certificates.v1.CertificateSigningRequestCondition: 1 type:s, 2 reason:s, 3 message:s, 4 lastUpdateTime:Time, 5 lastTransitionTime:Time, 6 status:s
certificates.v1.CertificateSigningRequestSpec: 1 request:y, 2 username:s, 3 uid:s, 4 groups:s*, 5 usages:s*, 6 extra:{ExtraValue}, 7 signerName:s, 8 expirationSeconds:i?
certificates.v1.CertificateSigningRequestStatus: 1 conditions:certificates.v1.CertificateSigningRequestCondition*, 2 certificate:y
coordination.v1.Lease: 1 metadata:meta.ObjectMeta, 2 spec:coordination.v1.LeaseSpec
coordination.v1.LeaseSpec: 1 holderIdentity:s?, 2 leaseDurationSeconds:i?, 3 acquireTime:MicroTime, 4 renewTime:MicroTime, 5 leaseTransitions:i?, 6 strategy:s?, 7 preferredHolder:s?
meta.DeleteOptions: 1 gracePeriodSeconds:i?, 2 preconditions:meta.Preconditions, 3 orphanDependents:b?, 4 propagationPolicy:s?, 5 dryRun:s*, 6 ignoreStoreReadErrorWithClusterBreakingPotential:b?
meta.FieldSelectorRequirement: 1 key:s, 2 operator:s, 3 values:s*
meta.LabelSelector: 1 matchLabels:{s}, 2 matchExpressions:meta.LabelSelectorRequirement*
meta.LabelSelectorRequirement: 1 key:s, 2 operator:s, 3 values:s*
meta.ObjectMeta: 1 name:s, 2 generateName:s, 3 namespace:s, 5 uid:s, 6 resourceVersion:s, 7 generation:i, 8 creationTimestamp:Time, 9 deletionTimestamp:Time, 10 deletionGracePeriodSeconds:i?, 11 labels:{s}, 12 annotations:{s}, 13 ownerReferences:meta.OwnerReference*, 14 finalizers:s*
meta.OwnerReference: 1 kind:s, 3 name:s, 4 uid:s, 5 apiVersion:s, 6 controller:b?, 7 blockOwnerDeletion:b?
meta.Preconditions: 1 uid:s?, 2 resourceVersion:s?
policy.v1.Eviction: 1 metadata:meta.ObjectMeta, 2 deleteOptions:meta.DeleteOptions
policy.v1.PodDisruptionBudget: 1 metadata:meta.ObjectMeta, 2 spec:policy.v1.PodDisruptionBudgetSpec
policy.v1.PodDisruptionBudgetSpec: 1 minAvailable:IntOrString?, 2 selector:meta.LabelSelector, 3 maxUnavailable:IntOrString?, 4 unhealthyPodEvictionPolicy:s?
scheduling.v1.PriorityClass: 1 metadata:meta.ObjectMeta, 2 value:i?, 3 globalDefault:b, 4 description:s, 5 preemptionPolicy:s?
`
