import { test } from 'tap'
import { ConfigurationError } from '../../daemon/process/configuration-file.ts'
import { decodeSimulationFile, simulationPlan } from './simulation-file.ts'

const head = { apiVersion: 'bramble.dev/v1alpha1', kind: 'Simulation' }
const machines = [
  { name: 'house', zone: 'house', memory: '2Gi', cpu: 2 },
  { name: 'garden', count: 2, zone: 'garden', labels: { 'bramble.dev/gpio': 'yes' } },
]
const garden = { event: 'networkOff', zone: 'garden', from: '10m', to: '70m' }

function planOf(fields: object) {
  const text = JSON.stringify({ ...head, machines, story: [garden], ...fields })
  return simulationPlan(decodeSimulationFile(text, 'story.yaml'), [], 'story.yaml')
}

function problemsOf(fields: object): readonly string[] {
  try {
    planOf(fields)
    return []
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems
    throw error
  }
}

test('machines have the usual size but for what is given, and a zone is a label', (t) => {
  const plan = planOf({})
  t.same(
    plan.machines.map(({ name, cpus, memoryBytes }) => [name, cpus, memoryBytes]),
    [
      ['house', 2, 2 * 1024 ** 3],
      ['garden-1', 4, 4 * 1024 ** 3],
      ['garden-2', 4, 4 * 1024 ** 3],
    ],
  )
  t.same(plan.machines[1]?.labels, { 'bramble.dev/gpio': 'yes', 'topology.kubernetes.io/zone': 'garden' })
  t.end()
})

test('an event of a zone is one of its machines, and the story lasts half an hour longer than its last event', (t) => {
  const { story, durationMs } = planOf({})
  t.match(story, [{ kind: 'networkOff', fromMs: 600_000, toMs: 4_200_000, machines: ['garden-1', 'garden-2'] }])
  t.equal(durationMs, 6_000_000)
  t.equal(planOf({ duration: '2h' }).durationMs, 7_200_000)
  t.end()
})

test('a reboot and a drain need no end', (t) => {
  const { story } = planOf({
    story: [
      { event: 'reboot', machine: 'house', from: '1m' },
      { event: 'drain', machine: 'house', from: '9m' },
    ],
  })
  t.same(
    story.map(({ kind, toMs }) => [kind, toMs]),
    [
      ['reboot', 150_000],
      ['drain', undefined],
    ],
  )
  t.end()
})

test('a lost controller is restored from the backup of the beginning, or of the given time', (t) => {
  const lost = { event: 'controllerLost', from: '30m', to: '40m' }
  t.same(planOf({ story: [lost] }).story[0]?.backupMs, 0)
  t.same(planOf({ story: [{ ...lost, backup: '5m' }] }).story[0]?.backupMs, 300_000)
  t.end()
})

const story = (event: object) => ({ story: [{ ...garden, ...event }] })

for (const [what, fields, problem] of [
  ['another kind', { kind: 'Pod' }, 'kind: Unsupported value: "Pod": supported values: "Simulation"'],
  ['a field that does not exist', { machine: 'x' }, 'machine: Unknown field'],
  [
    'no machines',
    { machines: [] },
    'machines: Required value: name at least one machine, or a backup of the controller',
  ],
  [
    'an event that does not exist',
    story({ event: 'flood' }),
    /^story\[0\]\.event: Unsupported value: "flood": .*"networkOff"/,
  ],
  [
    'a time that is not one',
    story({ from: 'soon' }),
    'story[0].from: Invalid value: "soon": write a time like 90s, 10m or 26h, at most 7d',
  ],
  ['an end before the beginning', story({ to: '5m' }), 'story[0].to: Invalid value: "5m": must be later than `from`'],
  [
    'no end',
    { story: [{ event: 'powerOff', machine: 'house', from: '1m' }] },
    'story[0].to: Required value: powerOff lasts until then',
  ],
  [
    'a zone without machines',
    story({ zone: 'cellar' }),
    'story[0].zone: Invalid value: "cellar": use one of house, garden',
  ],
  [
    'a machine that does not exist',
    story({ zone: undefined, machine: 'pi' }),
    'story[0].machine: Invalid value: "pi": use one of house, garden-1, garden-2',
  ],
  ['a machine and a zone', story({ machine: 'house' }), 'story[0].zone: Forbidden: give a machine or a zone, not both'],
  [
    'neither a machine nor a zone',
    story({ zone: undefined }),
    'story[0].machine: Required value: give the machine or the zone of networkOff',
  ],
  [
    'a machine of an event of the controller',
    story({ event: 'controllerOff' }),
    'story[0].zone: Forbidden: controllerOff is about the controller',
  ],
  [
    'a backup where none is restored',
    story({ backup: '1m' }),
    'story[0].backup: Forbidden: only controllerLost restores a backup',
  ],
  [
    'a backup after the loss',
    { story: [{ event: 'controllerLost', from: '1m', to: '9m', backup: '5m' }] },
    'story[0].backup: Invalid value: "5m": must not be later than `from`',
  ],
  [
    'two events of one machine at once',
    { story: [garden, { ...garden, zone: undefined, machine: 'garden-2', from: '20m' }] },
    'story[1].from: Invalid value: "20m": story[0] is not over then: begin it later',
  ],
  [
    'a duration that is too short',
    { duration: '1h' },
    /^duration: Invalid value: "1h": the last event of the story is over after 1h10m/,
  ],
  [
    'two machines of one name',
    { machines: [...machines, { name: 'garden-2' }] },
    'machines[2].name: Duplicate value: "garden-2"',
  ],
  [
    'a name that is invalid',
    { machines: [...machines, { name: 'Pi_1' }] },
    /^machines\[2\]\.name: Invalid value: "Pi_1": use at most 52/,
  ],
  [
    'a count of 0',
    { machines: [...machines, { name: 'x', count: 0 }] },
    'machines[2].count: Invalid value: 0: use a whole number from 1 to 500',
  ],
  [
    'no memory',
    { machines: [...machines, { name: 'x', memory: '0' }] },
    'machines[2].memory: Invalid value: "0": must be more than 0',
  ],
  [
    'a pull that never ends',
    { containers: { pull: '48h' } },
    /^containers\.pull: Invalid value: "48h": write a time like 90s, 10m or 26h, at most 1d/,
  ],
] as const) {
  test(`the file of a simulation is refused for ${what}`, (t) => {
    const [found = '', ...others] = problemsOf(fields)
    if (typeof problem === 'string') t.equal(found, problem)
    else t.match(found, problem)
    t.same(others, [])
    t.end()
  })
}
