/** Defaults of what a pod's author left out, as pkg/apis/core/v1/defaults.go sets them. */
import { withDefaultTolerations } from '../pod/default-tolerations.ts'
import {
  type Container,
  type ContainerPort,
  type PodSpec,
  type PodTemplateSpec,
  PodTemplateSpecSchema,
  type Probe,
} from '../pod.ts'
import { withVolumeDefaults } from './volume-validation.ts'
import { withoutZeros } from './zero-fields.ts'

/** The specification of a pod. Admission adds the tolerations of the node lifecycle to pods, not to templates. */
export function withPodDefaults(spec: PodSpec): PodSpec {
  return { ...withPodSpecDefaults(spec), tolerations: withDefaultTolerations(spec.tolerations ?? []) }
}

/** A pod template as Kubernetes stores it: also without the fields that are empty, so that equal templates are equal JSON. */
export function withTemplateDefaults(template: PodTemplateSpec): PodTemplateSpec {
  const given = withoutZeros(PodTemplateSpecSchema, template)
  return { ...given, spec: withPodSpecDefaults(given.spec) }
}

/** The specification of a pod or of a pod template (SetDefaults_PodSpec in pkg/apis/core/v1/defaults.go). */
function withPodSpecDefaults(spec: PodSpec): PodSpec {
  const account = spec.serviceAccountName || spec.serviceAccount
  const withDefaults = <C extends Container>(container: C) =>
    withContainerDefaults(container, spec.hostNetwork === true)
  return {
    ...spec,
    containers: spec.containers.map(withDefaults),
    ...(spec.initContainers && { initContainers: spec.initContainers.map(withDefaults) }),
    ...(spec.ephemeralContainers && { ephemeralContainers: spec.ephemeralContainers.map(withDefaults) }),
    ...(spec.volumes && { volumes: spec.volumes.map(withVolumeDefaults) }),
    restartPolicy: spec.restartPolicy || 'Always',
    terminationGracePeriodSeconds: spec.terminationGracePeriodSeconds ?? 30,
    dnsPolicy: spec.dnsPolicy || 'ClusterFirst',
    schedulerName: spec.schedulerName || 'default-scheduler',
    securityContext: spec.securityContext ?? {},
    ...(account ? { serviceAccountName: account, serviceAccount: account } : {}),
  }
}

function withContainerDefaults<C extends Container>(container: C, hostNetwork: boolean): C {
  const { limits = {}, requests = {} } = container.resources ?? {}
  const filled = { ...limits, ...requests }
  return {
    ...container,
    ...(container.ports && { ports: container.ports.map((port) => withPortDefaults(port, hostNetwork)) }),
    resources: { ...container.resources, ...(Object.keys(filled).length > 0 && { requests: filled }) },
    ...probesWithDefaults(container),
    imagePullPolicy: container.imagePullPolicy || pullPolicyFor(container.image ?? ''),
    terminationMessagePath: container.terminationMessagePath || '/dev/termination-log',
    terminationMessagePolicy: container.terminationMessagePolicy || 'File',
  }
}

function probesWithDefaults({ livenessProbe, readinessProbe, startupProbe, lifecycle }: Container) {
  const { postStart, preStop } = lifecycle ?? {}
  return {
    ...(livenessProbe && { livenessProbe: withProbeDefaults(livenessProbe) }),
    ...(readinessProbe && { readinessProbe: withProbeDefaults(readinessProbe) }),
    ...(startupProbe && { startupProbe: withProbeDefaults(startupProbe) }),
    ...(lifecycle && {
      lifecycle: {
        ...(postStart && { postStart: withHandlerDefaults(postStart) }),
        ...(preStop && { preStop: withHandlerDefaults(preStop) }),
      },
    }),
  }
}

function withProbeDefaults(probe: Probe): Probe {
  return {
    ...withHandlerDefaults(probe),
    timeoutSeconds: probe.timeoutSeconds || 1,
    periodSeconds: probe.periodSeconds || 10,
    successThreshold: probe.successThreshold || 1,
    failureThreshold: probe.failureThreshold || 3,
  }
}

function withHandlerDefaults<H extends Pick<Probe, 'httpGet'>>(handler: H): H {
  const { httpGet } = handler
  if (httpGet === undefined) return handler
  return { ...handler, httpGet: { ...httpGet, path: httpGet.path || '/', scheme: httpGet.scheme || 'HTTP' } }
}

function withPortDefaults(port: ContainerPort, hostNetwork: boolean): ContainerPort {
  const hostPort = port.hostPort || (hostNetwork ? port.containerPort : undefined)
  return { ...port, ...(hostPort === undefined ? {} : { hostPort }), protocol: port.protocol || 'TCP' }
}

/** A tag that moves is pulled every time: `latest`, or none at all. A digest never moves. */
function pullPolicyFor(image: string): 'Always' | 'IfNotPresent' {
  const [name = '', digest] = image.split('@')
  const lastPart = name.slice(name.lastIndexOf('/') + 1)
  const tag = lastPart.split(':')[1] ?? (digest === undefined ? 'latest' : '')
  return tag === 'latest' ? 'Always' : 'IfNotPresent'
}
