import { test } from 'tap'
import type { Pod, PodSpec } from '../pod.ts'
import { podTemplateWarnings, podWarnings } from './pod-warnings.ts'

const plain = { name: 'c', image: 'i' }

/** The warnings about a pod with these fields. */
function warned(spec: Partial<PodSpec>, annotations?: { readonly [key: string]: string }): readonly string[] {
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', ...(annotations && { annotations }) },
    spec: { containers: [plain], ...spec },
  }
  return podWarnings(pod)
}

test('a pod that is meant as it is has no warnings', async (t) => {
  t.same(warned({}), [])
  const spec = {
    nodeSelector: { 'kubernetes.io/arch': 'arm64' },
    terminationGracePeriodSeconds: 0,
    hostAliases: [{ ip: '10.0.0.1' }, { ip: '10.0.0.2' }],
    imagePullSecrets: [{ name: 'a' }, { name: 'b' }],
    overhead: { memory: '1Mi', cpu: '100m' },
  }
  t.same(warned(spec), [])
})

test('a pod whose name is not a host name', async (t) => {
  const names = ['a.b', 'x'.repeat(64), `${'x'.repeat(63)}.y`]
  const pods = names.map((name): Pod => {
    return { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { containers: [plain] } }
  })
  const recommended =
    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: "
  t.same(
    pods.map((pod) => podWarnings(pod)),
    [
      [`${recommended}[must not contain dots]`],
      [`${recommended}[must be no more than 63 characters]`],
      [`${recommended}[must be no more than 63 characters must not contain dots]`],
    ],
  )
})

test('deprecated labels of nodes, wherever nodes are chosen by them', async (t) => {
  const os = 'deprecated since v1.14; use "kubernetes.io/os" instead'
  t.same(warned({ nodeSelector: { 'beta.kubernetes.io/os': 'linux', own: 'x' } }), [
    `spec.nodeSelector[beta.kubernetes.io/os]: ${os}`,
  ])
  const term = {
    matchExpressions: [
      { key: 'a', operator: 'Exists' },
      { key: 'beta.kubernetes.io/os', operator: 'Exists' },
    ],
  }
  const nodeAffinity = {
    requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] },
    preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference: term }],
  }
  const inAffinity = 'spec.affinity.nodeAffinity'
  t.same(warned({ affinity: { nodeAffinity } }), [
    `${inAffinity}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[1].key: beta.kubernetes.io/os is ${os}`,
    `${inAffinity}.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[1].key: beta.kubernetes.io/os is ${os}`,
  ])
  const spread = {
    maxSkew: 1,
    topologyKey: 'failure-domain.beta.kubernetes.io/zone',
    whenUnsatisfiable: 'DoNotSchedule',
  }
  t.same(warned({ topologySpreadConstraints: [spread, { ...spread, topologyKey: 'zone', labelSelector: {} }] }), [
    'spec.topologySpreadConstraints[0].topologyKey: failure-domain.beta.kubernetes.io/zone is deprecated since v1.17; use ' +
      '"topology.kubernetes.io/zone" instead',
    'spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod',
  ])
})

test('an affinity for no pods', async (t) => {
  const term = { topologyKey: 'zone' }
  const affinity = {
    requiredDuringSchedulingIgnoredDuringExecution: [{ ...term, labelSelector: {} }, term],
    preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: term }],
  }
  const none = 'a null labelSelector results in matching no pod'
  t.same(
    warned({ affinity: { podAffinity: affinity, podAntiAffinity: affinity } }),
    ['podAffinity', 'podAntiAffinity'].flatMap((kind) => [
      `spec.affinity.${kind}.requiredDuringSchedulingIgnoredDuringExecution[1].labelSelector: ${none}`,
      `spec.affinity.${kind}.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector: ${none}`,
    ]),
  )
})

test('annotations that are without effect, unless the field is set', async (t) => {
  const critical = 'scheduler.alpha.kubernetes.io/critical-pod'
  t.same(warned({}, { [critical]: '' }), [
    `metadata.annotations[${critical}]: non-functional in v1.16+; use the "priorityClassName" field instead`,
  ])
  const ofPod = 'seccomp.security.alpha.kubernetes.io/pod'
  const ofContainer = 'container.seccomp.security.alpha.kubernetes.io/c'
  const appArmor = 'container.apparmor.security.beta.kubernetes.io/c'
  const annotations = { [ofPod]: 'x', [ofContainer]: 'x', [appArmor]: 'x' }
  t.same(warned({}, annotations), [
    `metadata.annotations[${ofPod}]: non-functional in v1.27+; use the "seccompProfile" field instead`,
    `metadata.annotations[${ofContainer}]: non-functional in v1.27+; use the "seccompProfile" field instead`,
    `metadata.annotations[${appArmor}]: deprecated since v1.30; use the "appArmorProfile" field instead`,
  ])
  const profile = { type: 'RuntimeDefault' }
  const containers = [{ ...plain, securityContext: { seccompProfile: profile } }]
  t.same(
    warned({ containers, securityContext: { seccompProfile: profile, appArmorProfile: profile } }, annotations),
    [],
  )
})

test('values that are there twice, or empty, or cannot be', async (t) => {
  t.same(warned({ hostAliases: [{ ip: '10.0.0.1' }, { ip: '10.0.0.1' }] }), [
    'spec.hostAliases[1].ip: duplicate ip "10.0.0.1"',
  ])
  t.same(warned({ imagePullSecrets: [{ name: 'a' }, { name: '' }, { name: 'a' }] }), [
    'spec.imagePullSecrets[2].name: duplicate name "a"',
    'spec.imagePullSecrets[1].name: invalid empty name ""',
  ])
  t.same(warned({ terminationGracePeriodSeconds: -1 }), [
    'spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1',
  ])
  t.same(warned({ overhead: { memory: '100m', cpu: '100m' } }), [
    'spec.overhead[memory]: fractional byte value "100m" is invalid, must be an integer',
  ])
})

test('amounts, variables and ports of all containers, each at its place', async (t) => {
  const resources = { limits: { memory: '1500m', cpu: '1500m' }, requests: { 'ephemeral-storage': '1500m' } }
  const port = { containerPort: 80, protocol: 'TCP' }
  t.same(
    warned({
      initContainers: [{ ...plain, name: 'init', resources, ports: [port] }],
      containers: [{ ...plain, ports: [port] }],
    }),
    [
      'spec.initContainers[0].resources.limits[memory]: fractional byte value "1500m" is invalid, must be an integer',
      'spec.initContainers[0].resources.requests[ephemeral-storage]: fractional byte value "1500m" is invalid, must be an integer',
      'spec.containers[0].ports[0]: duplicate port definition with spec.initContainers[0].ports[0]',
    ],
  )
})

test('of a template the paths begin at its place', async (t) => {
  const template = {
    metadata: { annotations: { 'security.alpha.kubernetes.io/sysctls': '' } },
    spec: { containers: [plain], nodeSelector: { 'app.kubernetes.io/created-by': 'x' } },
  }
  t.same(podTemplateWarnings('spec.template', template), [
    'spec.template.spec.nodeSelector[app.kubernetes.io/created-by]: deprecated since v1.9',
    'spec.template.metadata.annotations[security.alpha.kubernetes.io/sysctls]: non-functional in v1.11+; use the "sysctls" field instead',
  ])
})
