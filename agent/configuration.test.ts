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
    podsPerCore: 0,
    podPidsLimit: 0,
    seccompDefault: true,
    evictionMaxPodGraceSeconds: 0,
    systemReserved: {},
    kubeReserved: {},
    registerWithTaints: [],
    nodeLabels: {},
    nodeIPs: [],
    highTemperatureCelsius: undefined,
    restartDocker: true,
    enableRemoteReboot: false,
    downloads: { isMetered: false },
    osUpgrades: false,
    podLogLinks: false,
    staticPodPath: '/etc/bramble/manifests',
    fileCheckMs: 20_000,
    devices: [],
    pools: [],
    imagePulls: { parallel: 2, stallMs: 60_000 },
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

test('a setting has the unit of the decision that uses it', async (t) => {
  const all = `metered: true
maxPods: 20
podsPerCore: 5
podPidsLimit: 100
seccompDefault: false
evictionMaxPodGracePeriod: 7
evictionPressureTransitionPeriod: 1m
kubeReserved: { cpu: 250m }
registerNode: false
registerWithTaints: [{ key: room, value: attic, effect: NoSchedule }]
nodeLabels: { room: attic }
nodeIP: 10.0.0.7
healthzPort: 0
healthzBindAddress: 0.0.0.0
highTemperatureCelsius: 75
restartDocker: false
enableRemoteReboot: true
agentUpdates: {window: '02:00-05:00', bytesPerDay: 10Mi}
osUpgrades: true
podLogLinks: true
staticPodPath: ""
fileCheckFrequency: 5s
maxParallelImagePulls: 3
imagePullProgressDeadline: 2m
minimumContainerTTLDuration: 30s
maximumDeadContainersPerContainer: 4
maximumDeadContainers: 50
imageGCHighThresholdPercent: 60
imageGCLowThresholdPercent: 50
imageMinimumGCAge: 3m
imageMaximumGCAge: 4m
`
  t.match(read(all), {
    metered: true,
    maxPods: 20,
    podsPerCore: 5,
    podPidsLimit: 100,
    seccompDefault: false,
    evictionMaxPodGraceSeconds: 7,
    evictionPressureTransitionMs: 60_000,
    kubeReserved: { cpu: 0.25 },
    registerNode: false,
    registerWithTaints: [{ key: 'room', value: 'attic', effect: 'NoSchedule' }],
    nodeLabels: { room: 'attic' },
    nodeIPs: ['10.0.0.7'],
    healthzPort: 0,
    healthzBindAddress: '0.0.0.0',
    highTemperatureCelsius: 75,
    restartDocker: false,
    enableRemoteReboot: true,
    downloads: { isMetered: true, window: { fromMinute: 120, toMinute: 300 }, bytesPerDay: 10_485_760 },
    osUpgrades: true,
    podLogLinks: true,
    staticPodPath: '',
    fileCheckMs: 5_000,
    imagePulls: { parallel: 3, stallMs: 120_000 },
    garbage: {
      containers: { minAgeMs: 30_000, maxPerPodContainer: 4, maxContainers: 50 },
      images: { highPercent: 60, lowPercent: 50, minAgeMs: 180_000, maxAgeMs: 240_000 },
    },
  })
})

test('the time of a shutdown is shared as the kubelet does, and by all pods where it is left out', async (t) => {
  const nothing = { graceMs: undefined, criticalMs: undefined, byPriority: [] }
  const table = (...rows: readonly (readonly [number, number])[]) =>
    `shutdownGracePeriodByPodPriority: ${JSON.stringify(rows.map(([priority, shutdownGracePeriodSeconds]) => ({ priority, shutdownGracePeriodSeconds })))}`
  for (const [yaml, shutdown] of [
    ['', nothing],
    ['shutdownGracePeriod: 30s', { ...nothing, graceMs: 30_000, criticalMs: 0 }],
    ['shutdownGracePeriod: 1s\nshutdownGracePeriodCriticalPods: 1s', { ...nothing, graceMs: 1_000, criticalMs: 1_000 }],
    ['shutdownGracePeriod: 0s', { ...nothing, graceMs: 0, criticalMs: 0 }],
    ['shutdownGracePeriodCriticalPods: 0s', nothing],
    [
      table([0, 20], [1000, 0]),
      {
        ...nothing,
        byPriority: [
          { priority: 0, graceMs: 20_000 },
          { priority: 1000, graceMs: 0 },
        ],
      },
    ],
  ] as const) {
    t.same(read(yaml).shutdown, shutdown, yaml)
  }
  const beside = 'shutdownGracePeriodByPodPriority: cannot be set beside shutdownGracePeriod'
  const tooLong = 'shutdownGracePeriodCriticalPods: must not be longer than shutdownGracePeriod'
  const span = 'must be 0s or a duration of at least 1s (like 30s)'
  for (const [yaml, ...problems] of [
    ['shutdownGracePeriod: 999ms', `shutdownGracePeriod: "999ms" ${span}`],
    ['shutdownGracePeriod: soon', `shutdownGracePeriod: "soon" ${span}`],
    ['shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 31s', tooLong],
    ['shutdownGracePeriodCriticalPods: 1s', tooLong],
    [`shutdownGracePeriod: 30s\n${table([0, 20])}`, beside],
    [`shutdownGracePeriodCriticalPods: 0s\n${table([0, 20])}`, beside],
    [
      table([7, 20], [8, -1], [7, 1]),
      'shutdownGracePeriodByPodPriority[1].shutdownGracePeriodSeconds: -1 must not be below 0',
      'shutdownGracePeriodByPodPriority[2].priority: 7 is set twice',
    ],
  ] as const) {
    t.same(problemsOf(yaml), problems, yaml)
  }
})

test('devices are offered under the prefix of Bramble, and only those below /dev', async (t) => {
  const of = (name: string, ...paths: readonly string[]) => ({ name, paths })
  const yaml = (...devices: readonly object[]) => `devices: ${JSON.stringify(devices)}`
  t.same(read(yaml(of('camera', '/dev/video?', '/dev/media*'), of('serial', '/dev/serial/by-id/usb-*'))).devices, [
    {
      resource: 'bramble.dev/camera',
      paths: [
        { pattern: '/dev/video?', target: undefined },
        { pattern: '/dev/media*', target: undefined },
      ],
      groups: [],
      shared: 1,
    },
    {
      resource: 'bramble.dev/serial',
      paths: [{ pattern: '/dev/serial/by-id/usb-*', target: undefined }],
      groups: [],
      shared: 1,
    },
  ])
  const outside = (path: string) => `devices[0].paths: ${path} must be below /dev, with * and ? in its last part only`
  for (const path of ['/etc/shadow', 'dev/video0', '/sys/dev/', '/dev/../etc', '/dev/*/x', '/dev/bus?yy/x']) {
    t.same(problemsOf(yaml(of('camera', path))), [outside(path)])
  }
  t.match(problemsOf(yaml(of('a/b'), of('c', '/dev/c'), of('c'), of('no name'))), [
    'devices[0].name: "a/b" must not contain "/"; the prefix bramble.dev/ is added',
    'devices[2].name: c is set twice',
    /^devices\[3].name: "no name" /,
  ])
})

test('pools are folders and disks, and the first is the default one unless another is', async (t) => {
  const disk = '3F333DF9-90A4-4DDA-8DD3-9485D27CEE36'
  const yaml = (...pools: readonly object[]) => `pools: ${JSON.stringify(pools)}`
  t.same(read(yaml({ name: 'ssd', disk, reserve: '10%' }, { name: 'card', path: '/srv/pool/' })).pools, [
    { name: 'ssd', place: { disk: disk.toLowerCase() }, reserve: { percent: 10 }, isDefault: true },
    { name: 'card', place: { path: '/srv/pool' }, reserve: undefined, isDefault: false },
  ])
  const second = yaml({ name: 'a', path: '/a', reserve: '2Gi' }, { name: 'b', path: '/b', default: true })
  t.match(read(second).pools, [{ isDefault: false, reserve: { bytes: 2 ** 31 } }, { isDefault: true }])
  t.match(problemsOf(yaml({ name: 'a' })), ['pools[0]: give either path, a folder, or disk, the UUID of a file system'])
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

test('a number or a duration outside its limits is reported with them', async (t) => {
  const least = (name: string, written: string) =>
    `${name}: "${written}" must be a duration of at least 1s (like 10s or 5m)`
  const between = (name: string, written: number, limits: string) => `${name}: ${written} must be between ${limits}`
  for (const [yaml, problem] of [
    ['nodeStatusUpdateFrequency: 999ms', least('nodeStatusUpdateFrequency', '999ms')],
    ['fileCheckFrequency: 0s', least('fileCheckFrequency', '0s')],
    [
      'evictionPressureTransitionPeriod: 0s',
      'evictionPressureTransitionPeriod: "0s" must be a duration (like 10s or 5m)',
    ],
    ['nodeLeaseDurationSeconds: 3', between('nodeLeaseDurationSeconds', 3, '4 and 3600')],
    ['nodeLeaseDurationSeconds: 3601', between('nodeLeaseDurationSeconds', 3601, '4 and 3600')],
    ['highTemperatureCelsius: 29', between('highTemperatureCelsius', 29, '30 and 120')],
    ['imageGCLowThresholdPercent: 85', 'imageGCLowThresholdPercent: 85 must be below imageGCHighThresholdPercent (85)'],
    ['imageMaximumGCAge: 2m', 'imageMaximumGCAge: must be longer than imageMinimumGCAge, or 0s'],
    ['systemReserved: { memory: -1 }', 'systemReserved[memory]: -1 must be a quantity (like 100m or 64Mi)'],
    ['systemReserved: { gpu: 1 }', 'systemReserved[gpu]: only cpu, memory, ephemeral-storage, pid can be reserved'],
    ['staticPodPath: manifests', 'staticPodPath: "manifests" must start with /'],
    ['nodeIP: 10.0.0.7,10.0.0.8', 'nodeIP: "10.0.0.7,10.0.0.8" must be one address, or one IPv4 and one IPv6 address'],
    ['podPidsLimit: 0', 'podPidsLimit: 0 must be -1 (no limit) or greater than 0'],
  ] as const) {
    t.same(problemsOf(yaml), [problem])
  }
  for (const yaml of [
    'nodeStatusUpdateFrequency: 1s',
    'nodeLeaseDurationSeconds: 4',
    'nodeLeaseDurationSeconds: 3600',
    'nodeIP: 10.0.0.7,fd00::7',
    'podPidsLimit: 1',
    'podPidsLimit: -1',
    'serializeImagePulls: true\nmaxParallelImagePulls: 1',
    'systemReserved: { memory: 0 }',
  ]) {
    t.same(problemsOf(yaml), [], yaml)
  }
})

test('names are published to the house only where it is configured', async (t) => {
  t.equal(read('').multicastDNS, undefined)
  t.same(read('multicastDNS: {}').multicastDNS, { interfaces: undefined, services: false })
  t.same(read('multicastDNS: { interfaces: [eth0], services: true }').multicastDNS, {
    interfaces: ['eth0'],
    services: true,
  })
  t.match(problemsOf('multicastDNS: { interfaces: [] }'), [/must name an interface, or be left out/])
  t.match(problemsOf('multicastDNS: { interfaces: [eth0/1, a-name-of-16-byt] }'), [/"eth0\/1"/, /"a-name-of-16-byt"/])
})
