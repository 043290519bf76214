/** The objects of the fleet by which nodes run the proxy. */
import type { Namespace } from '../../../api/namespace.ts'
import type { IngressClass } from '../../../api/network/ingress-class.ts'
import type { Container, PodTemplateSpec } from '../../../api/pod.ts'
import { withTemplateDefaults } from '../../../api/validation/pod-defaults.ts'
import type { DaemonSet } from '../../../api/workloads/daemon-set.ts'
import { type IngressSettings, leastMemory } from './ingress-settings.ts'
import { proxyFiles, proxyPorts, proxyProgram } from './proxy-text.ts'

/** Namespace of all that belongs to the proxy. */
export const ingressNamespace = 'bramble-ingress'
/** `spec.controller` of the classes that it serves. */
export const ingressControllerName = 'bramble.dev/haproxy'
export const ingressClassName = 'bramble'
export const proxyName = 'haproxy'

const defaultClassAnnotation = 'ingressclass.kubernetes.io/is-default-class'
/** On each object that the controller made: it removes those, and no others. */
export const madeLabels = { 'app.kubernetes.io/managed-by': 'bramble-controller', 'app.kubernetes.io/name': 'ingress' }
export const proxyPodLabels = { 'app.kubernetes.io/name': 'ingress' } as const

/** The Secret with all files but certificates, and those with certificates: the pod names all of them, as a change would start it again. */
export const configurationSecret = proxyName
export const certificateSecrets = Array.from({ length: 8 }, (_, index) => `${proxyName}-certificates-${index}`)

/** The user `haproxy` of Docker's image. */
const user = 99

export function isMade({ metadata }: { readonly metadata: { readonly labels?: { readonly [key: string]: string } } }) {
  return Object.entries(madeLabels).every(([key, value]) => metadata.labels?.[key] === value)
}

/** The proxy has ports of the host, which no stricter level allows. */
export const enforcedLabels = { 'pod-security.kubernetes.io/enforce': 'privileged' } as const

export function proxyNamespace(): Namespace {
  const labels = { ...madeLabels, ...enforcedLabels }
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name: ingressNamespace, labels } }
}

export function proxyClass({ defaultClass }: Pick<IngressSettings, 'defaultClass'>): IngressClass {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'IngressClass',
    metadata: {
      name: ingressClassName,
      labels: madeLabels,
      annotations: { [defaultClassAnnotation]: String(defaultClass) },
    },
    spec: { controller: ingressControllerName },
  }
}

/** As the API stores it, so that it can be compared. A host port is free only when the pod before is gone: no surge. */
export function proxyDaemonSet(settings: IngressSettings): DaemonSet {
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: proxyName, namespace: ingressNamespace, labels: madeLabels },
    spec: {
      selector: { matchLabels: proxyPodLabels },
      template: withTemplateDefaults(template(settings)),
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
      revisionHistoryLimit: 10,
    },
  }
}

function template(settings: IngressSettings): PodTemplateSpec {
  const { nodeSelector, tolerations } = settings
  const sources = [
    { secret: { name: configurationSecret } },
    ...certificateSecrets.map((name) => ({ secret: { name, optional: true } })),
  ]
  return {
    metadata: { labels: proxyPodLabels },
    spec: {
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: { runAsNonRoot: true, runAsUser: user, runAsGroup: user, fsGroup: user },
      containers: [proxyContainer(settings)],
      volumes: [{ name: 'files', projected: { sources, defaultMode: 0o440 } }],
      nodeSelector,
      tolerations: [...tolerations],
    },
  }
}

function proxyContainer({ image, httpPort, httpsPort, memoryLimit }: IngressSettings): Container {
  const healthy = { httpGet: { path: '/healthz', port: proxyPorts.health } }
  return {
    name: proxyName,
    image,
    command: ['sh', '-c', proxyProgram],
    ports: [
      { name: 'http', containerPort: proxyPorts.http, hostPort: httpPort },
      { name: 'https', containerPort: proxyPorts.https, hostPort: httpsPort },
    ],
    readinessProbe: { ...healthy, periodSeconds: 5 },
    livenessProbe: { ...healthy, periodSeconds: 10, timeoutSeconds: 5 },
    resources: { requests: { cpu: '10m', memory: leastMemory }, limits: { memory: memoryLimit } },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    volumeMounts: [{ name: 'files', mountPath: proxyFiles.folder, readOnly: true }],
  }
}
