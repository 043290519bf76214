/** Defaults of what a pod's author left out, as pkg/apis/core/v1/defaults.go sets them. */
import { withDefaultTolerations } from '../pod/default-tolerations.ts'
import {
  type Container,
  type ContainerPort,
  type EnvVar,
  type PodSpec,
  type PodTemplateSpec,
  PodTemplateSpecSchema,
  type Probe,
} from '../pod.ts'
import { withFieldVersion, withVolumeDefaults } from './volume-validation.ts'
import { withoutZeros } from './zero-fields.ts'

/** The specification of a pod. Admission adds the tolerations of the node lifecycle to pods, not to templates. */
export function withPodDefaults(spec: PodSpec): PodSpec {
  return {
    ...withImpliedFields(withPodSpecDefaults(spec)),
    enableServiceLinks: spec.enableServiceLinks ?? true,
    tolerations: withDefaultTolerations(spec.tolerations ?? []),
  }
}

/** What other fields of a pod imply. A template does not show it (SetDefaults_Pod). */
export function withImpliedFields(spec: PodSpec): PodSpec {
  const isOnHost = spec.hostNetwork === true
  const implied = <C extends Container>(container: C) => withRequests(isOnHost ? withHostPorts(container) : container)
  return {
    ...spec,
    containers: spec.containers.map(implied),
    ...(spec.initContainers && { initContainers: spec.initContainers.map(implied) }),
  }
}

/** A limit without a request is a request, too. */
function withRequests<C extends Container>(container: C): C {
  const { limits, requests } = container.resources ?? {}
  if (limits === undefined || Object.keys(limits).length === 0) return container
  return { ...container, resources: { ...container.resources, requests: { ...limits, ...requests } } }
}

function withHostPorts<C extends Container>(container: C): C {
  if (container.ports === undefined) return container
  const ports = container.ports.map((port) => ({ ...port, hostPort: port.hostPort || port.containerPort }))
  return { ...container, ports }
}

/** A pod template as Kubernetes stores it: also without the fields that are empty, so that equal templates are equal JSON. */
export function withTemplateDefaults(template: PodTemplateSpec): PodTemplateSpec {
  const given = withoutZeros(PodTemplateSpecSchema, template)
  return { ...given, spec: withPodSpecDefaults(given.spec) }
}

/** The specification of a pod or of a pod template (SetDefaults_PodSpec in pkg/apis/core/v1/defaults.go). */
function withPodSpecDefaults(spec: PodSpec): PodSpec {
  const account = spec.serviceAccountName || spec.serviceAccount
  return {
    ...spec,
    containers: spec.containers.map(withContainerDefaults),
    ...(spec.initContainers && { initContainers: spec.initContainers.map(withContainerDefaults) }),
    ...(spec.ephemeralContainers && { ephemeralContainers: spec.ephemeralContainers.map(withContainerDefaults) }),
    ...(spec.volumes && { volumes: spec.volumes.map(withVolumeDefaults) }),
    restartPolicy: spec.restartPolicy || 'Always',
    terminationGracePeriodSeconds: spec.terminationGracePeriodSeconds ?? 30,
    dnsPolicy: spec.dnsPolicy || 'ClusterFirst',
    schedulerName: spec.schedulerName || 'default-scheduler',
    securityContext: spec.securityContext ?? {},
    ...(account ? { serviceAccountName: account, serviceAccount: account } : {}),
  }
}

function withContainerDefaults<C extends Container>(container: C): C {
  return {
    ...container,
    ...(container.env && { env: container.env.map(withVariableDefaults) }),
    ...(container.ports && { ports: container.ports.map(withPortDefaults) }),
    resources: { ...container.resources },
    ...probesWithDefaults(container),
    imagePullPolicy: container.imagePullPolicy || pullPolicyFor(container.image ?? ''),
    terminationMessagePath: container.terminationMessagePath || '/dev/termination-log',
    terminationMessagePolicy: container.terminationMessagePolicy || 'File',
  }
}

function withVariableDefaults(variable: EnvVar): EnvVar {
  const { fieldRef, ...from } = variable.valueFrom ?? {}
  if (fieldRef === undefined) return variable
  return { ...variable, valueFrom: { ...from, fieldRef: withFieldVersion(fieldRef) } }
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
    ...(probe.grpc && { grpc: { ...probe.grpc, service: probe.grpc.service ?? '' } }),
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

function withPortDefaults(port: ContainerPort): ContainerPort {
  return { ...port, protocol: port.protocol || 'TCP' }
}

/** A tag that moves is pulled every time: `latest`, or none at all. A digest never moves. */
function pullPolicyFor(image: string): 'Always' | 'IfNotPresent' {
  const [name = '', digest] = image.split('@')
  const lastPart = name.slice(name.lastIndexOf('/') + 1)
  const tag = lastPart.split(':')[1] ?? (digest === undefined ? 'latest' : '')
  return tag === 'latest' ? 'Always' : 'IfNotPresent'
}
