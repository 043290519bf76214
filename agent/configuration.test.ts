import { test } from 'tap'
import { type ConfigurationError, decodeConfiguration } from '../daemon/process/configuration-file.ts'
import {
  type AgentConfigurationFile,
  AgentConfigurationSchema,
  agentConfiguration,
  emptyAgentConfiguration,
} from './configuration.ts'

const head = 'apiVersion: bramble.dev/v1alpha1\nkind: AgentConfiguration\n'
const read = (yaml: string) => agentConfiguration(decodeConfiguration(head + yaml, AgentConfigurationSchema, 'f'), 'f')

function problemsOf(yaml: string): readonly string[] {
  try {
    read(yaml)
    return []
  } catch (error) {
    return (error as ConfigurationError).problems
  }
}

test("without a file everything is as the kubelet's defaults", async (t) => {
  t.match(agentConfiguration(emptyAgentConfiguration), {
    nodeStatusUpdateMs: 10_000,
    nodeStatusReportMs: 300_000,
    nodeLeaseDurationSeconds: 40,
    metered: false,
    maxPods: 110,
    evictionPressureTransitionMs: 300_000,
    registerNode: true,
    healthzPort: 10248,
    healthzBindAddress: '127.0.0.1',
  })
  t.same(agentConfiguration(emptyAgentConfiguration).garbage, {
    containers: { minAgeMs: 0, maxPerPodContainer: 1, maxContainers: -1 },
    images: { highPercent: 85, lowPercent: 80, minAgeMs: 120_000, maxAgeMs: 0 },
  })
  t.equal(agentConfiguration(emptyAgentConfiguration).evictionHard.length, 5)
  t.ok(Object.isFrozen(agentConfiguration(emptyAgentConfiguration).evictionHard))
})

test('the size and number of log files have the limits of the kubelet, or others', async (t) => {
  t.same(read('').containerLogs, { maxBytes: 10_485_760, maxFiles: 5 })
  const other = read('containerLogMaxSize: 512Ki\ncontainerLogMaxFiles: 2')
  t.same(other.containerLogs, { maxBytes: 524_288, maxFiles: 2 })
  t.match(problemsOf('containerLogMaxSize: 1Ki\ncontainerLogMaxFiles: 1'), [
    /^containerLogMaxSize/,
    /^containerLogMaxFiles/,
  ])
})

test('a metered link has a lease of 20 min unless another one is configured', async (t) => {
  const of = (more: Partial<AgentConfigurationFile>) => agentConfiguration({ ...emptyAgentConfiguration, ...more })
  t.match(of({ metered: true }), { metered: true, nodeLeaseDurationSeconds: 1_200 })
  t.match(of({ metered: true, nodeLeaseDurationSeconds: 600 }), { metered: true, nodeLeaseDurationSeconds: 600 })
  t.match(of({ metered: false }), { metered: false, nodeLeaseDurationSeconds: 40 })
})

test('the report frequency takes the value of the update frequency if only that is set', async (t) => {
  t.equal(read('nodeStatusUpdateFrequency: 20s').nodeStatusReportMs, 20_000)
  t.equal(read('nodeStatusUpdateFrequency: 20s\nnodeStatusReportFrequency: 1m').nodeStatusReportMs, 60_000)
})

test('any hard eviction threshold replaces them all', async (t) => {
  t.same(read('evictionHard: { memory.available: 64Mi }').evictionHard, [
    { signal: 'memory.available', value: { quantity: 64 * 2 ** 20, family: 'binary' } },
  ])
  t.same(read('evictionHard: {}').evictionHard, [])
})

test('reservations are read as quantities, also bare numbers', async (t) => {
  t.same(read('systemReserved: { cpu: 100m, memory: 64Mi }\nkubeReserved: { cpu: 1 }').systemReserved, {
    cpu: 0.1,
    memory: 64 * 2 ** 20,
  })
})

test('a typo is reported, not ignored', async (t) => {
  t.match(problemsOf('evictionHrad: {}'), [/evictionHrad: Unknown field/])
})

test('pulls are one after the other, a few at once, or as many as there are', async (t) => {
  t.equal(read('').imagePulls.parallel, 2)
  t.equal(read('serializeImagePulls: true').imagePulls.parallel, 1)
  t.equal(read('serializeImagePulls: false').imagePulls.parallel, Number.POSITIVE_INFINITY)
  t.equal(read('serializeImagePulls: false\nmaxParallelImagePulls: 5').imagePulls.parallel, 5)
  t.match(problemsOf('serializeImagePulls: true\nmaxParallelImagePulls: 5'), [
    /maxParallelImagePulls: cannot be above 1/,
  ])
})

test('thresholds of image collection that contradict each other are rejected', async (t) => {
  t.match(problemsOf('imageGCHighThresholdPercent: 70'), [/imageGCLowThresholdPercent: 80 must be below/])
  t.match(problemsOf('imageMaximumGCAge: 1m'), [/imageMaximumGCAge: must be longer than imageMinimumGCAge/])
  t.equal(read('imageMaximumGCAge: 24h\nmaximumDeadContainers: 5').garbage.images.maxAgeMs, 86_400_000)
})

test('all mistakes are reported at once, each with its place', async (t) => {
  const problems = problemsOf(
    [
      'nodeStatusUpdateFrequency: often',
      'nodeLeaseDurationSeconds: 0',
      'maxPods: -1',
      'podPidsLimit: 0',
      'evictionHard: { memory.avialable: 1Mi }',
      'systemReserved: { memory: much, gpu: 1 }',
      'nodeLabels: { node-role.kubernetes.io/worker: "", "a b": c, room: "-" }',
      'nodeIP: pi-7',
      'healthzPort: 70000',
      'registerWithTaints: [{ key: "no key", effect: NoSchedule }]',
    ].join('\n'),
  )
  const places = [
    'nodeStatusUpdateFrequency',
    'nodeLeaseDurationSeconds',
    'maxPods',
    'podPidsLimit',
    'evictionHard\\[memory.avialable]',
    'systemReserved\\[memory]',
    'systemReserved\\[gpu]',
    'nodeLabels\\[node-role.kubernetes.io/worker]',
    'nodeLabels\\[a b]',
    'nodeLabels\\[room]',
    'nodeIP',
    'healthzPort',
    'registerWithTaints',
  ]
  for (const place of places)
    t.ok(
      problems.some((problem) => new RegExp(`^${place}`).test(problem)),
      place,
    )
  t.equal(problems.length, places.length)
})
