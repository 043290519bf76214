import { test } from 'tap'
import { fleetBadge } from './fleet-badge.ts'
import { fleetSummary } from './fleet-summary.ts'

const node = (ready: 'True' | 'False' | 'Unknown', ...wrong: string[]) => ({
  status: {
    conditions: [{ type: 'Ready', status: ready }, ...wrong.map((type) => ({ type, status: 'True' as const }))],
  },
})
const pod = (phase: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown', isReady = true, waitsFor?: string) => ({
  status: {
    phase,
    conditions: [{ type: 'Ready', status: isReady ? ('True' as const) : ('False' as const) }],
    containerStatuses: [
      {
        ...{ name: 'main', image: 'web', imageID: '', ready: isReady, restartCount: 0 },
        state: waitsFor === undefined ? {} : { waiting: { reason: waitsFor } },
      },
    ],
  },
})

test('an empty fleet has no problem', async (t) => {
  t.match(fleetSummary([], []), { status: 'ok', problems: 0, nodes: 0, pods: 0 })
})

test('nodes are counted by what is wrong with them, and each problem once', async (t) => {
  const nodes = [
    node('True'),
    node('True', 'UnderVoltage'),
    node('Unknown', 'StorageWear'),
    { ...node('True'), spec: { unschedulable: true } },
  ]
  t.match(fleetSummary(nodes, []), {
    status: 'degraded',
    problems: 2,
    nodes: 4,
    nodesReady: 3,
    nodesNotReady: 1,
    nodesUnhealthy: 2,
    nodesUnschedulable: 1,
  })
})

test('pods are counted by their phase; one without a status is pending', async (t) => {
  const pods = [
    pod('Running'),
    pod('Running', false, 'CrashLoopBackOff'),
    pod('Running', false),
    pod('Pending', false, 'ImagePullBackOff'),
    pod('Succeeded', false),
    pod('Failed', false),
    pod('Unknown'),
    {},
  ]
  t.match(fleetSummary([], pods), {
    problems: 2,
    pods: 8,
    podsRunning: 3,
    podsPending: 2,
    podsSucceeded: 1,
    podsFailed: 1,
    podsUnknown: 1,
    podsNotReady: 2,
    podsCrashLooping: 1,
  })
})

test('a widget reads flat values only', async (t) => {
  for (const [name, value] of Object.entries(fleetSummary([node('True')], [pod('Running')]))) {
    t.ok(['number', 'string'].includes(typeof value), name)
  }
})

test('the badge is green, yellow with problems, and red while a node is not ready', async (t) => {
  const badge = (...nodes: Parameters<typeof node>[0][]) =>
    fleetBadge(
      fleetSummary(
        nodes.map((ready) => node(ready)),
        [],
      ),
    )
  t.match(badge('True', 'True'), />2\/2 ready<\/text>/)
  t.match(badge('True'), /fill="#3c873a"/)
  t.match(badge('True', 'False'), /fill="#b3261e"/)
  t.match(badge('True', 'False'), />1\/2 ready, 1 problem<\/text>/)
  const worn = fleetBadge(fleetSummary([node('True', 'StorageWear'), node('True', 'UnderVoltage')], []))
  t.match(worn, /fill="#b08800"/)
  t.match(worn, />2\/2 ready, 2 problems<\/text>/)
  t.match(worn, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" [^<>]*>.*<\/svg>\n$/)
})
